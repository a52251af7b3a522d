// Compares CRI's lists with the table of live containers.
#include "manager/pods/sync_audit.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "api/base/log.h"
#include "manager/demand/demand_source.h"

namespace qrm::manager {

struct SyncAudit::Impl : std::enable_shared_from_this<SyncAudit::Impl> {
  Impl(Parts given, std::vector<std::chrono::milliseconds> given_delays)
      : parts(std::move(given)), delays(std::move(given_delays)), timer(parts.io) {}

  void Arm();
  void ListPods();
  void ListContainers(const std::vector<RuntimePod>& pods);
  void Compare(const std::map<std::string, RuntimePod>& pod_by_id,
               const std::vector<RuntimeContainer>& containers);

  const Parts parts;
  const std::vector<std::chrono::milliseconds> delays;
  boost::asio::steady_timer timer;
  std::chrono::steady_clock::time_point synchronized_at;
  std::size_t next = 0;             // of `delays`
  std::set<std::string> asked_for;  // ids
  bool stopped = false;
};

SyncAudit::SyncAudit(Parts parts, std::vector<std::chrono::milliseconds> delays)
    : impl_(std::make_shared<Impl>(std::move(parts), std::move(delays))) {}

SyncAudit::~SyncAudit() {
  Stop();
}

void SyncAudit::OnSynchronized() {
  impl_->synchronized_at = std::chrono::steady_clock::now();
  impl_->next = 0;
  impl_->Arm();
}

void SyncAudit::Stop() {
  impl_->stopped = true;
  impl_->timer.cancel();
}

void SyncAudit::Impl::Arm() {
  if (next == delays.size()) {
    return;
  }
  timer.expires_at(synchronized_at + delays[next++]);
  timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && !self->stopped) {
      self->ListPods();
      self->Arm();
    }
  });
}

void SyncAudit::Impl::ListPods() {
  parts.runtime.ListPods([self = shared_from_this()](StatusOr<std::vector<RuntimePod>> pods) {
    if (pods.ok() && !self->stopped) {
      self->parts.listener.OnListed(*pods);
      self->ListContainers(*pods);
    }
  });
}

void SyncAudit::Impl::ListContainers(const std::vector<RuntimePod>& pods) {
  std::map<std::string, RuntimePod> pod_by_id;
  for (const RuntimePod& pod : pods) {
    pod_by_id[pod.id] = pod;
  }
  parts.runtime.ListContainers([self = shared_from_this(), pod_by_id = std::move(pod_by_id)](
                                   StatusOr<std::vector<RuntimeContainer>> containers) {
    if (containers.ok() && !self->stopped) {
      self->Compare(pod_by_id, *containers);
    }
  });
}

void SyncAudit::Impl::Compare(const std::map<std::string, RuntimePod>& pod_by_id,
                              const std::vector<RuntimeContainer>& containers) {
  bool left_out = false;
  for (const RuntimeContainer& container : containers) {
    const auto pod = pod_by_id.find(container.pod_id);
    if (pod == pod_by_id.end()) {
      continue;
    }
    const std::optional<LiveContainer> known = parts.live.Find(KeyOf(pod->second, container));
    const bool unknown = !known.has_value() || known->id != container.id;
    if (unknown && asked_for.insert(container.id).second) {
      log::Warning("the runtime left out a container: synchronizing again",
                   {{"pod", pod->second.name}, {"container", container.name}});
      left_out = true;
    }
  }
  if (left_out) {
    parts.listener.OnLeftOut();
  }
}

}  // namespace qrm::manager
