// Keeps calls with their arguments.
#include "manager/runtime/nri/held_events.h"

#include <tuple>
#include <type_traits>

namespace qrm::manager {

void HeldEvents::DeliverTo(RuntimeEvents& events) {
  events_ = &events;
  for (auto& event : std::exchange(held_, {})) {
    event(events);
    event = nullptr;  // what exists on a large node is large
  }
}

template <typename... Parameters, typename... Arguments>
void HeldEvents::Pass(void (RuntimeEvents::*event)(Parameters...), Arguments&&... arguments) {
  if (events_ != nullptr) {
    (events_->*event)(std::forward<Arguments>(arguments)...);
    return;
  }
  held_.emplace_back([event, kept = std::tuple<std::decay_t<Arguments>...>(std::forward<Arguments>(
                                 arguments)...)](RuntimeEvents& events) mutable {
    std::apply([&](auto&... each) { (events.*event)(std::move(each)...); }, kept);
  });
}

void HeldEvents::OnConnected(const RuntimeInfo& runtime) {
  Pass(&RuntimeEvents::OnConnected, runtime);
}

void HeldEvents::OnDisconnected(const Status& cause) {
  Drop();
  if (events_ != nullptr) {
    events_->OnDisconnected(cause);
  }
}

void HeldEvents::OnSynchronize(std::vector<RuntimePod> pods,
                               std::vector<RuntimeContainer> containers, UpdatesReply reply) {
  Pass(&RuntimeEvents::OnSynchronize, std::move(pods), std::move(containers), std::move(reply));
}

void HeldEvents::OnPodStarted(const RuntimePod& pod) {
  Pass(&RuntimeEvents::OnPodStarted, pod);
}

void HeldEvents::OnPodStopped(const RuntimePod& pod) {
  Pass(&RuntimeEvents::OnPodStopped, pod);
}

void HeldEvents::OnPodRemoved(const RuntimePod& pod) {
  Pass(&RuntimeEvents::OnPodRemoved, pod);
}

void HeldEvents::OnCreateContainer(RuntimePod pod, RuntimeContainer container,
                                   AdjustmentReply reply) {
  Pass(&RuntimeEvents::OnCreateContainer, std::move(pod), std::move(container), std::move(reply));
}

void HeldEvents::OnUpdateContainer(RuntimePod pod, RuntimeContainer container,
                                   LinuxResources requested, UpdatesReply reply) {
  Pass(&RuntimeEvents::OnUpdateContainer, std::move(pod), std::move(container),
       std::move(requested), std::move(reply));
}

void HeldEvents::OnStartContainer(const RuntimePod& pod, const RuntimeContainer& container,
                                  StartReply reply) {
  Pass(&RuntimeEvents::OnStartContainer, pod, container, std::move(reply));
}

void HeldEvents::OnContainerStarted(const RuntimePod& pod, const RuntimeContainer& container) {
  Pass(&RuntimeEvents::OnContainerStarted, pod, container);
}

void HeldEvents::OnContainerStopped(const RuntimePod& pod, const RuntimeContainer& container) {
  Pass(&RuntimeEvents::OnContainerStopped, pod, container);
}

void HeldEvents::OnContainerRemoved(const RuntimePod& pod, const RuntimeContainer& container) {
  Pass(&RuntimeEvents::OnContainerRemoved, pod, container);
}

}  // namespace qrm::manager
