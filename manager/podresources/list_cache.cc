// Caches the bytes of each pod separately: a serialized response is the bytes of its pods, one
// after another.
#include "manager/podresources/list_cache.h"

#include <algorithm>
#include <utility>

#include "api/proto/podresources/v1/api.pb.h"

namespace qrm::manager {
namespace {

/// The expected size of a pod, so that the buffer rarely grows: some labels and three resources.
constexpr std::size_t kBytesOfContainer = 256;

bool AgreeOn(const checkpoint::PodRecord& pod, const KubeletView& a, const KubeletView& b) {
  return a.AgreesOn(pod.meta.pod_namespace, pod.meta.name, b);
}

}  // namespace

/// Appends pods to an answer.
struct ListCache::Encoder {
  explicit Encoder(const std::set<std::string>& told) : annotations(told) {}

  void Append(const checkpoint::PodRecord& pod, const Machine& machine, const KubeletView& kubelet,
              const PodPlacements* placements) {
    one.Clear();
    FillPod(pod, machine, kubelet, placements, *one.add_pod_resources());
    KeepAnnotations(annotations, *one.mutable_pod_resources(0));
    one.AppendToString(bytes.get());
  }
  void Append(::v1::PodResources& pod) {
    one.Clear();
    one.add_pod_resources()->Swap(&pod);
    KeepAnnotations(annotations, *one.mutable_pod_resources(0));
    one.AppendToString(bytes.get());
  }

  const std::set<std::string>& annotations;
  std::shared_ptr<std::string> bytes = std::make_shared<std::string>();
  ::v1::ListPodResourcesResponse one;  // reused, with its memory
};

std::shared_ptr<const std::string> ListCache::Answer(const StatePtr& state,
                                                     const KubeletPtr& kubelet, ToAsk* to_ask) {
  ToAsk unwanted;
  ToAsk& ask = to_ask == nullptr ? unwanted : *to_ask;
  const MutexLock lock(mutex_);
  if (to_ask != nullptr) {
    ask.resources = TakeDue();
  }
  if (state == state_ && kubelet == kubelet_ && !told_ && ask.resources.empty()) {
    return bytes_;
  }
  Encoder encoder(annotations_);
  const std::size_t old_size = bytes_ == nullptr ? 0 : bytes_->size();
  encoder.bytes->reserve(
      std::max(old_size, kubelet->size() + state->container_count() * kBytesOfContainer));
  KeptByPod kept = Encode(*state, kubelet, encoder, ask);
  ForEachKubeletsOwnPod(*state, *kubelet, [&](::v1::PodResources& pod) { encoder.Append(pod); });
  state_ = state;
  kubelet_ = kubelet;
  bytes_ = std::move(encoder.bytes);
  kept_ = std::move(kept);
  told_ = false;
  return bytes_;
}

std::set<std::string> ListCache::TakeDue() {
  std::set<std::string> due;
  const SteadyTime now = std::chrono::steady_clock::now();
  std::erase_if(ask_again_, [&](const auto& entry) {
    return entry.second <= now && due.insert(entry.first).second;
  });
  return due;
}

bool ListCache::IsSame(const checkpoint::PodRecord& pod, const Kept& known,
                       const KubeletPtr& kubelet) const {
  return !known.stale && (kubelet == kubelet_ || AgreeOn(pod, *kubelet, *kubelet_));
}

ListCache::KeptByPod ListCache::Encode(const checkpoint::NodeState& state,
                                       const KubeletPtr& kubelet, Encoder& encoder,
                                       ToAsk& to_ask) const {
  KeptByPod kept;
  kept.reserve(state.pod_count());
  state.ForEachPod([&](const checkpoint::PodRecord& pod) QRM_REQUIRES(mutex_) {
    const auto known = kept_.find(&pod);
    const bool is_new = known == kept_.end();
    Kept now{.offset = encoder.bytes->size(),
             .placements = is_new ? nullptr : known->second.placements};
    if (!is_new && IsSame(pod, known->second, kubelet)) {
      encoder.bytes->append(*bytes_, known->second.offset, known->second.size);
    } else {
      encoder.Append(pod, machine_, *kubelet, now.placements.get());
    }
    now.size = encoder.bytes->size() - now.offset;
    kept.emplace(&pod, std::move(now));
    (is_new ? to_ask.changed : to_ask.others).push_back(&pod);
  });
  return kept;
}

void ListCache::Tell(const checkpoint::PodRecord& pod, const std::string& container,
                     const PlacedByResource& placed) {
  const MutexLock lock(mutex_);
  const auto found = kept_.find(&pod);
  if (found == kept_.end()) {
    return;
  }
  Kept& kept = found->second;
  PodPlacements all = kept.placements == nullptr ? PodPlacements() : *kept.placements;
  for (const auto& [resource, told] : placed) {
    all[container].insert_or_assign(resource, told);
  }
  if (kept.placements == nullptr ? !all.empty() : all != *kept.placements) {
    kept.placements = std::make_shared<const PodPlacements>(std::move(all));
    kept.stale = true;
    told_ = true;
  }
}

void ListCache::AskAgain(const std::string& resource, SteadyTime when) {
  const MutexLock lock(mutex_);
  const auto [entry, is_new] = ask_again_.emplace(resource, when);
  entry->second = is_new ? when : std::min(entry->second, when);
}

std::shared_ptr<const PodPlacements> ListCache::PlacementsOf(
    const checkpoint::PodRecord& pod) const {
  const MutexLock lock(mutex_);
  const auto found = kept_.find(&pod);
  return found == kept_.end() ? nullptr : found->second.placements;
}

}  // namespace qrm::manager
