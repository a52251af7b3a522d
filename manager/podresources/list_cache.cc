// Encodes all pods again when the state, kubelet's view or a plugin's report has changed.
#include "manager/podresources/list_cache.h"

#include <algorithm>
#include <utility>

#include "api/proto/podresources/v1/api.pb.h"

namespace qrm::manager {

std::shared_ptr<const std::string> ListCache::Answer(const StatePtr& state,
                                                     const KubeletPtr& kubelet, ToAsk* to_ask) {
  const MutexLock lock(mutex_);
  if (to_ask != nullptr) {
    to_ask->resources = TakeDue();
  }
  if (state == state_ && kubelet == kubelet_ && bytes_ != nullptr &&
      (to_ask == nullptr || to_ask->resources.empty())) {
    return bytes_;
  }
  // Without growing, and without the former answer beside it: kubelet's may have 16 MiB.
  auto bytes = std::make_shared<std::string>();
  bytes->reserve(std::max(bytes_ == nullptr ? 0 : bytes_->size(), kubelet->list_bytes()));
  bytes_ = nullptr;
  ::v1::ListPodResourcesResponse one;  // reused, with its memory
  const auto append = [&](const auto& fill) {
    one.Clear();
    ::v1::PodResources& message = *one.add_pod_resources();
    fill(message);
    KeepAnnotations(annotations_, message);
    // A serialized response is the bytes of its pods, one after another.
    one.AppendToString(bytes.get());
  };
  ReportsByPod reports;
  state->ForEachPod([&](const checkpoint::PodRecord& pod) QRM_REQUIRES(mutex_) {
    const auto known = reports_.find(&pod);
    const bool is_new = known == reports_.end();
    const Reports& of_pod = reports[&pod] = is_new ? nullptr : known->second;
    append([&](auto& message) { FillPod(pod, machine_, *kubelet, of_pod.get(), message); });
    if (to_ask != nullptr) {
      (is_new ? to_ask->changed : to_ask->others).push_back(&pod);
    }
  });
  ForEachKubeletsOwnPod(*state, *kubelet, [&](::v1::PodResources& pod) {
    append([&](auto& message) { message.Swap(&pod); });
  });
  state_ = state;
  kubelet_ = kubelet;
  bytes_ = std::move(bytes);
  reports_ = std::move(reports);
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

void ListCache::Tell(const checkpoint::PodRecord& pod, const std::string& container,
                     const PlacedByResource& placed) {
  const MutexLock lock(mutex_);
  const auto found = reports_.find(&pod);
  if (found == reports_.end()) {
    return;
  }
  PodPlacements all = found->second == nullptr ? PodPlacements() : *found->second;
  for (const auto& [resource, told] : placed) {
    all[container].insert_or_assign(resource, told);
  }
  if (found->second == nullptr ? !all.empty() : all != *found->second) {
    found->second = std::make_shared<const PodPlacements>(std::move(all));
    bytes_ = nullptr;
  }
}

void ListCache::AskAgain(const std::string& resource, SteadyTime when) {
  const MutexLock lock(mutex_);
  const auto [entry, is_new] = ask_again_.emplace(resource, when);
  entry->second = is_new ? when : std::min(entry->second, when);
}

ListCache::Reports ListCache::PlacementsOf(const checkpoint::PodRecord& pod) const {
  const MutexLock lock(mutex_);
  const auto found = reports_.find(&pod);
  return found == reports_.end() ? nullptr : found->second;
}

}  // namespace qrm::manager
