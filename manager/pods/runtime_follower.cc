// Makes the parts of manager/pods, and joins their statuses.
#include "manager/pods/runtime_follower.h"

#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "manager/classes/class_keeper.h"
#include "manager/pods/ended_pods.h"
#include "manager/pods/inventory.h"
#include "manager/pods/pod_events.h"
#include "manager/pods/pod_placer.h"
#include "manager/pods/pre_start.h"
#include "manager/pods/sync_audit.h"
#include "manager/registry/plugins.h"
#include "manager/runtime/cri/cri_client.h"
#include "manager/runtime/live_containers.h"
#include "manager/runtime/nri/nri_plugin.h"
#include "manager/state/state_loop.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {
namespace {

ObserverOptions ObserverOptionsOf(const FollowerOptions& options) {
  ObserverOptions observer = options.pods.observer;
  observer.period = options.period;
  return observer;
}

}  // namespace

struct RuntimeFollower::Impl final : AuditListener {
  Impl(NodeParts given_parts, NriOptions nri_options, FollowerOptions options)
      : parts(std::move(given_parts)),
        version_period(options.version_period),
        adoption_grace(options.pods.adoption_grace),
        placer(parts, options.admission_deadline, adoption_grace, options.pods.retries()),
        ended({.io = parts.io, .live = parts.live, .placer = placer}, options.pods.ended_after),
        inventory(parts, placer, ended),
        observer({.io = parts.io,
                  .runtime = parts.runtime,
                  .state = parts.state,
                  .live = parts.live,
                  .read_cpuset = parts.read_cpuset,
                  .listener = inventory},
                 ObserverOptionsOf(options)),
        audit({.io = parts.io,
               .runtime = parts.runtime,
               .state = parts.state,
               .live = parts.live,
               .listener = *this,
               .after_list = options.after_list},
              std::move(options.audits)),
        pre_start(
            {.state = parts.state,
             .plugins = parts.plugins,
             .classes = parts.classes,
             .live = &parts.live,
             .hand_over = [this](const ContainerKey& key,
                                 PreStart::Done done) { placer.Start(key, std::move(done)); }},
            options.pods.pre_start_deadline),
        events(parts, {placer, inventory, observer, audit, ended, pre_start}),
        nri(parts.io, std::move(nri_options), events),
        version_timer(parts.io),
        grace_timer(parts.io) {}

  ListVerdict OnListed(const RuntimeList& list) override { return inventory.OnListed(list); }
  void OnLeftOut() override;
  void OnLeftOutAgain(const RuntimePod& pod, RuntimeContainer container) override {
    inventory.OnLeftOutAgain(pod, std::move(container));
  }
  void AskVersion();
  void AwaitGrace();
  CriStatus Cri() const {
    const MutexLock guard(mutex);
    return cri;
  }

  const NodeParts parts;
  const std::chrono::milliseconds version_period;
  const std::chrono::milliseconds adoption_grace;
  PodPlacer placer;
  EndedPods ended;
  Inventory inventory;
  Observer observer;
  SyncAudit audit;
  PreStart pre_start;
  PodEvents events;
  NriPlugin nri;
  boost::asio::steady_timer version_timer;
  boost::asio::steady_timer grace_timer;

  mutable Mutex mutex;
  CriStatus cri QRM_GUARDED_BY(mutex);
};

// Only a new connection makes the runtime synchronize again.
void RuntimeFollower::Impl::OnLeftOut() {
  nri.Reconnect(
      Errorf(StatusCode::kAborted, "the runtime left out a container: synchronizing again"));
}

void RuntimeFollower::Impl::AskVersion() {
  parts.runtime.GetVersion([this](const StatusOr<RuntimeInfo>& answer) {
    {
      const MutexLock guard(mutex);
      cri.runtime = answer.ok() ? *answer : cri.runtime;
      cri.problem = MessageOf(answer.status());
      cri.asked_at = std::chrono::steady_clock::now();
    }
    if (answer.ok() && parts.live.AwaitsCri()) {
      audit.LookSoon();
    }
  });
  version_timer.expires_after(version_period);
  version_timer.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      AskVersion();
    }
  });
}

void RuntimeFollower::Impl::AwaitGrace() {
  grace_timer.expires_after(adoption_grace);
  grace_timer.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      placer.RetryUnplaced();
    }
  });
}

RuntimeFollower::RuntimeFollower(NodeParts parts, NriOptions nri, FollowerOptions options)
    : impl_(std::make_unique<Impl>(std::move(parts), std::move(nri), std::move(options))) {}

RuntimeFollower::~RuntimeFollower() = default;

Status RuntimeFollower::Start() {
  impl_->observer.OnNriAway();
  impl_->AskVersion();
  impl_->AwaitGrace();
  return impl_->nri.Start();
}

void RuntimeFollower::Stop() {
  impl_->nri.Stop();
  impl_->observer.Stop();
  impl_->audit.Stop();
  impl_->ended.Stop();
  impl_->version_timer.cancel();
  impl_->grace_timer.cancel();
}

RuntimeStatus RuntimeFollower::GetStatus() const {
  const NriStatus nri = impl_->nri.GetStatus();
  RuntimeStatus status{.runtime = nri.runtime,
                       .nri_connected = nri.connected,
                       .nri_connects = nri.connects,
                       .nri_disconnects = nri.disconnects,
                       .last_sync = nri.last_sync,
                       .problem = nri.problem};
  const CriStatus cri = impl_->Cri();
  status.cri_reachable = cri.asked_at.has_value() && cri.problem.empty();
  if (status.cri_reachable && nri.runtime.name.empty()) {
    status.runtime = cri.runtime;
  }
  if (status.problem.empty()) {
    status.problem = cri.problem;
  }
  AddRuntimeMode(nri, impl_->observer.GetStatus(), status);
  AddCriFaults(nri, cri, status);
  if (std::string contradiction = impl_->inventory.contradiction(); !contradiction.empty()) {
    status.degraded_reasons.push_back(std::move(contradiction));
  }
  return status;
}

PodPlacer& RuntimeFollower::placer() const {
  return impl_->placer;
}

void RuntimeFollower::OnPluginRegistered(const std::string& resource) {
  impl_->placer.OnPluginRegistered(resource);
  if (sdk::IsDriverResource(resource) && !impl_->parts.stands_aside()) {
    impl_->pre_start.TellLate(resource);
  }
}

void RuntimeFollower::OnPodGone(const std::string& pod_uid) {
  impl_->ended.ReleaseEnded(pod_uid);
  if (impl_->parts.live.HasPod(pod_uid)) {
    impl_->audit.LookSoon();
  }
}

}  // namespace qrm::manager
