// Queues pods whose sandboxes have stopped; all wait equally long.
#include "manager/pods/ended_pods.h"

#include <deque>
#include <set>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "api/base/log.h"

namespace qrm::manager {

using std::chrono::steady_clock;

struct EndedPods::Impl : std::enable_shared_from_this<EndedPods::Impl> {
  Impl(Parts given, std::chrono::milliseconds given_delay)
      : parts(given), delay(given_delay), timer(parts.io) {}

  void Arm();
  void ForgetDue();
  bool Forget(const std::string& pod_uid);

  struct Waiting {
    std::string pod_uid;
    steady_clock::time_point until;
  };

  const Parts parts;
  const std::chrono::milliseconds delay;
  boost::asio::steady_timer timer;
  std::deque<Waiting> queue;
  std::set<std::string> unwanted;  // UIDs of pods that do not restart
  std::set<std::string> missing;   // ids of sandboxes that the latest list did not have
  bool stopped = false;
};

EndedPods::EndedPods(Parts parts, std::chrono::milliseconds delay)
    : impl_(std::make_shared<Impl>(parts, delay)) {}

// NOLINTNEXTLINE(bugprone-exception-escape): cancelling a timer throws nothing on Linux.
EndedPods::~EndedPods() {
  Stop();
}

void EndedPods::OnStopped(const std::string& pod_uid, const std::string& pod_id) {
  if (!impl_->parts.live.MarkStopped(pod_uid, pod_id)) {
    return;
  }
  if (impl_->unwanted.contains(pod_uid)) {
    ReleaseEnded(pod_uid);
    return;
  }
  impl_->queue.push_back({pod_uid, steady_clock::now() + impl_->delay});
  if (impl_->queue.size() == 1) {
    impl_->Arm();
  }
}

void EndedPods::OnListed(const std::vector<RuntimePod>& pods, steady_clock::time_point asked_at) {
  for (const RuntimePod& pod : pods) {
    if (pod.ready) {
      impl_->parts.live.MarkReady(pod.uid, pod.id, asked_at);
    } else {
      OnStopped(pod.uid, pod.id);
    }
  }
}

bool EndedPods::FindRemoved(const std::vector<RuntimePod>& pods) {
  std::set<std::string> ids;
  for (const RuntimePod& pod : pods) {
    ids.insert(pod.id);
  }
  const std::set<std::string> missing_before = std::exchange(impl_->missing, {});
  bool any_is_gone = false;
  for (const auto& [uid, known] : impl_->parts.live.Pods()) {
    for (const std::string& id : known) {
      if (ids.contains(id)) {
        continue;
      }
      if (!missing_before.contains(id)) {
        impl_->missing.insert(id);
      } else if (!impl_->parts.live.RemovePod(uid, id)) {
        log::Info("pod was removed without an event", {{"pod", uid}});
        any_is_gone = true;
      }
    }
  }
  if (any_is_gone) {
    impl_->parts.placer.RemoveGone();
  }
  return impl_->missing.empty();
}

void EndedPods::ReleaseEnded(const std::string& pod_uid) {
  LiveContainers& live = impl_->parts.live;
  std::erase_if(impl_->unwanted, [&](const std::string& uid) { return !live.HasPod(uid); });
  if (impl_->Forget(pod_uid)) {
    impl_->parts.placer.RemoveGone();
  } else if (live.HasPod(pod_uid)) {
    impl_->unwanted.insert(pod_uid);
  }
}

void EndedPods::Stop() {
  impl_->stopped = true;
  impl_->timer.cancel();
}

bool EndedPods::Impl::Forget(const std::string& pod_uid) {
  if (stopped || !parts.live.RemoveEnded(pod_uid)) {
    return false;
  }
  log::Info("pod has ended", {{"pod", pod_uid}});
  return true;
}

void EndedPods::Impl::Arm() {
  if (queue.empty() || stopped) {
    return;
  }
  timer.expires_at(queue.front().until);
  timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && !self->stopped) {
      self->ForgetDue();
      self->Arm();
    }
  });
}

void EndedPods::Impl::ForgetDue() {
  bool any = false;
  while (!queue.empty() && queue.front().until <= steady_clock::now()) {
    const std::string uid = std::move(queue.front().pod_uid);
    queue.pop_front();
    if (Forget(uid)) {
      any = true;
    } else if (parts.live.HasStopped(uid)) {  // a container has outlived its sandbox
      queue.push_back({uid, steady_clock::now() + delay});
    }
  }
  if (any) {
    parts.placer.RemoveGone();
  }
}

}  // namespace qrm::manager
