// A serialized response is its pods' bytes one after another, so that they can be kept apart.
#include "manager/podresources/list_cache.h"

#include <utility>

#include "manager/podresources/answers.h"

namespace qrm::manager {
namespace {

bool AgreeOn(const checkpoint::PodRecord& pod, const KubeletView& a, const KubeletView& b) {
  return a.AgreesOn(pod.meta.pod_namespace, pod.meta.name, b);
}

}  // namespace

std::shared_ptr<const std::string> ListCache::Answer(
    const std::shared_ptr<const checkpoint::NodeState>& state,
    const std::shared_ptr<const KubeletView>& kubelet) {
  const MutexLock lock(mutex_);
  if (state == state_ && kubelet == kubelet_) {
    return bytes_;
  }
  const std::shared_ptr<const std::string> old_bytes = bytes_;
  const SpanByPod old_spans = std::exchange(spans_, {});
  auto bytes = std::make_shared<std::string>();
  bytes->reserve(old_bytes == nullptr ? 0 : old_bytes->size());
  SpanByPod spans;
  spans.reserve(state->pod_count());
  ::v1::ListPodResourcesResponse one;  // used again and again: it keeps its memory
  state->ForEachPod([&](const checkpoint::PodRecord& pod) {
    const std::size_t offset = bytes->size();
    const auto known = old_spans.find(&pod);
    if (known != old_spans.end() && (kubelet == kubelet_ || AgreeOn(pod, *kubelet, *kubelet_))) {
      bytes->append(*old_bytes, known->second.offset, known->second.size);
    } else {
      one.Clear();
      FillPod(pod, machine_, *kubelet, *one.add_pod_resources());
      one.AppendToString(bytes.get());
    }
    spans.emplace(&pod, Span{.offset = offset, .size = bytes->size() - offset});
  });
  for (const ::v1::PodResources* pod : KubeletsOwnPods(*state, *kubelet)) {
    one.Clear();
    *one.add_pod_resources() = *pod;
    one.AppendToString(bytes.get());
  }
  state_ = state;
  kubelet_ = kubelet;
  bytes_ = std::move(bytes);
  spans_ = std::move(spans);
  return bytes_;
}

}  // namespace qrm::manager
