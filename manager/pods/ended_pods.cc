// Queues stopped sandboxes, which all wait equally long.
#include "manager/pods/ended_pods.h"

#include <deque>
#include <map>
#include <set>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "api/base/log.h"

namespace qrm::manager {

using std::chrono::steady_clock;

struct EndedPods::Impl : std::enable_shared_from_this<EndedPods::Impl> {
  Impl(Parts given, std::chrono::milliseconds given_delay)
      : parts(std::move(given)), delay(given_delay), timer(parts.io) {}

  void Add(const std::string& pod_uid, const std::string& pod_id);
  void Arm();
  void Forget();

  struct Waiting {
    std::string pod_uid;
    steady_clock::time_point until;
  };

  const Parts parts;
  const std::chrono::milliseconds delay;
  boost::asio::steady_timer timer;
  std::map<std::string, std::set<std::string>> ids_by_uid;  // that have stopped
  std::deque<Waiting> queue;
  std::set<std::string> missing;  // ids of the latest list
  bool stopped = false;
};

EndedPods::EndedPods(Parts parts, std::chrono::milliseconds delay)
    : impl_(std::make_shared<Impl>(std::move(parts), delay)) {}

EndedPods::~EndedPods() {
  Stop();
}

void EndedPods::OnStopped(const std::string& pod_uid, const std::string& pod_id) {
  impl_->Add(pod_uid, pod_id);
}

void EndedPods::OnListed(const std::vector<RuntimePod>& ready) {
  std::set<std::string> ready_ids;
  for (const RuntimePod& pod : ready) {
    ready_ids.insert(pod.id);
  }
  const std::set<std::string> missing_before = std::exchange(impl_->missing, {});
  for (const auto& [uid, ids] : impl_->parts.live.Pods()) {
    for (const std::string& id : ids) {
      if (ready_ids.contains(id)) {
        continue;
      }
      impl_->missing.insert(id);
      if (missing_before.contains(id)) {
        impl_->Add(uid, id);
      }
    }
  }
}

void EndedPods::Stop() {
  impl_->stopped = true;
  impl_->timer.cancel();
}

void EndedPods::Impl::Add(const std::string& pod_uid, const std::string& pod_id) {
  if (!ids_by_uid[pod_uid].insert(pod_id).second) {
    return;
  }
  queue.push_back({pod_uid, steady_clock::now() + delay});
  if (queue.size() == 1) {
    Arm();
  }
}

void EndedPods::Impl::Arm() {
  if (queue.empty() || stopped) {
    return;
  }
  timer.expires_at(queue.front().until);
  timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && !self->stopped) {
      self->Forget();
      self->Arm();
    }
  });
}

void EndedPods::Impl::Forget() {
  bool any = false;
  while (!queue.empty() && queue.front().until <= steady_clock::now()) {
    const std::string uid = std::move(queue.front().pod_uid);
    queue.pop_front();
    const auto ids = ids_by_uid.find(uid);
    if (ids != ids_by_uid.end() && parts.live.RemoveEnded(uid, ids->second)) {
      log::Info("pod has ended", {{"uid", uid}});
      any = true;
    }
  }
  // Those of a pod that lives on are kept: it ends with its next sandbox.
  std::erase_if(ids_by_uid, [this](const auto& entry) { return !parts.live.HasPod(entry.first); });
  if (any) {
    parts.placer.RemoveGone();
  }
}

}  // namespace qrm::manager
