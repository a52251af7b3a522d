// A serialized response is its pods' bytes one after another, so that they can be kept apart.
#include "manager/podresources/list_cache.h"

#include <utility>

namespace qrm::manager {
namespace {

bool AgreeOn(const checkpoint::PodRecord& pod, const KubeletView& a, const KubeletView& b) {
  return a.AgreesOn(pod.meta.pod_namespace, pod.meta.name, b);
}

}  // namespace

/// Appends pods to an answer.
struct ListCache::Encoder {
  void Append(const checkpoint::PodRecord& pod, const Machine& machine, const KubeletView& kubelet,
              const PodPlacements* placements) {
    one.Clear();
    FillPod(pod, machine, kubelet, placements, *one.add_pod_resources());
    one.AppendToString(bytes.get());
  }
  void Append(const ::v1::PodResources& pod) {
    one.Clear();
    *one.add_pod_resources() = pod;
    one.AppendToString(bytes.get());
  }

  std::shared_ptr<std::string> bytes = std::make_shared<std::string>();
  ::v1::ListPodResourcesResponse one;  // used again and again: it keeps its memory
};

std::shared_ptr<const std::string> ListCache::Answer(const StatePtr& state,
                                                     const KubeletPtr& kubelet, ToAsk* to_ask) {
  const MutexLock lock(mutex_);
  if (to_ask != nullptr) {
    to_ask->resources = std::exchange(ask_again_, {});
  }
  const bool asks_others = to_ask != nullptr && !to_ask->resources.empty();
  if (state == state_ && kubelet == kubelet_ && !told_ && !asks_others) {
    return bytes_;
  }
  const std::shared_ptr<const std::string> old_bytes = bytes_;
  const KeptByPod old_kept = std::exchange(kept_, {});
  KeptByPod kept;
  kept.reserve(state->pod_count());
  Encoder encoder;
  encoder.bytes->reserve(old_bytes == nullptr ? 0 : old_bytes->size());
  const KubeletPtr old_kubelet = kubelet_;
  state->ForEachPod([&](const checkpoint::PodRecord& pod) {
    const auto known = old_kept.find(&pod);
    const bool is_new = known == old_kept.end();
    Kept now{.offset = encoder.bytes->size(),
             .placements = is_new ? nullptr : known->second.placements};
    if (!is_new && !known->second.stale &&
        (kubelet == old_kubelet || AgreeOn(pod, *kubelet, *old_kubelet))) {
      encoder.bytes->append(*old_bytes, known->second.offset, known->second.size);
    } else {
      encoder.Append(pod, machine_, *kubelet, now.placements.get());
    }
    now.size = encoder.bytes->size() - now.offset;
    kept.emplace(&pod, std::move(now));
    if (to_ask != nullptr && (is_new || asks_others)) {
      (is_new ? to_ask->changed : to_ask->others).push_back(&pod);
    }
  });
  for (const ::v1::PodResources* pod : KubeletsOwnPods(*state, *kubelet)) {
    encoder.Append(*pod);
  }
  state_ = state;
  kubelet_ = kubelet;
  bytes_ = std::move(encoder.bytes);
  kept_ = std::move(kept);
  told_ = false;
  return bytes_;
}

void ListCache::Tell(const checkpoint::PodRecord& pod, const PodPlacements& placements) {
  const MutexLock lock(mutex_);
  const auto found = kept_.find(&pod);
  if (found == kept_.end()) {
    return;
  }
  Kept& kept = found->second;
  PodPlacements all = kept.placements == nullptr ? PodPlacements() : *kept.placements;
  for (const auto& [container, told] : placements) {
    for (const auto& [resource, placed] : told) {
      all[container].insert_or_assign(resource, placed);
    }
  }
  if (kept.placements == nullptr ? !all.empty() : all != *kept.placements) {
    kept.placements = std::make_shared<const PodPlacements>(std::move(all));
    kept.stale = true;
    told_ = true;
  }
}

void ListCache::AskAgain(const std::string& resource) {
  const MutexLock lock(mutex_);
  ask_again_.insert(resource);
}

std::shared_ptr<const PodPlacements> ListCache::PlacementsOf(
    const checkpoint::PodRecord& pod) const {
  const MutexLock lock(mutex_);
  const auto found = kept_.find(&pod);
  return found == kept_.end() ? nullptr : found->second.placements;
}

}  // namespace qrm::manager
