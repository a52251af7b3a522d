// Compares a plugin's allocations with the records, releases conflicting ones, restores in batches.
#include "manager/admission/teach_plugin.h"

#include <cstddef>
#include <set>
#include <utility>

#include "api/base/clock.h"
#include "api/base/log.h"
#include "plugins/placement/recorded_grants.h"
#include "plugins/sdk/calls/extension_calls.h"
#include "plugins/sdk/calls/plugin_calls.h"

namespace qrm::manager {
namespace {

/// Grants that one Restore call sends.
constexpr std::size_t kBatch = 50;

CpuSet OwnCpus(const ResourceAllocation& allocation) {
  return allocation.exclusive ? CpuSet::Parse(allocation.value).value_or(CpuSet()) : CpuSet();
}

class Resync : public std::enable_shared_from_this<Resync> {
 public:
  Resync(PluginInfo plugin, std::shared_ptr<PluginClient> client,
         const placement::AdmissionOptions& options, std::function<void()> ready)
      : plugin_(std::move(plugin)),
        client_(std::move(client)),
        options_(options),
        ready_(std::move(ready)) {}

  void Begin(const TeachingParts& parts) {
    if (!parts.live_is_known) {
      TeachNext();
      return;
    }
    using Held = calls::CallResult<calls::HeldAllocations>;
    client_->Ask<calls::GetResourcesAllocation>({}, Deadline(),
                                                [self = shared_from_this(), state = parts.state,
                                                 is_live = parts.is_live](const Held& held) {
                                                  if (!held.value.ok()) {
                                                    self->ready_();
                                                    return;
                                                  }
                                                  self->Compare(*state, **held.value, is_live);
                                                  self->ReleaseNext();
                                                });
  }

 private:
  qrm::Deadline Deadline() const { return DeadlineAfter(options_.plugin_call_deadline); }

  void Compare(const checkpoint::NodeState& state, const calls::HeldList& held,
               const std::function<bool(const ContainerKey& key)>& is_live) {
    missing_ = RecordedGrants(state, plugin_.resource, options_);
    // Records of removed pods are deleted soon. Other pods may have their resources by now: a
    // checkpoint older than the plugin's state, as after the loss of a log, must not take them.
    std::erase_if(missing_, [&](const auto& grant) { return !is_live(grant.first); });
    for (const auto& [key, resource, allocation] : held) {
      missing_.erase(key);
    }
    CpuSet wanted;
    for (const auto& [key, grant] : missing_) {
      wanted |= OwnCpus(grant.allocation);
    }
    for (const auto& [key, resource, allocation] : held) {
      const bool is_orphan = state.FindPod(key.pod_uid) == nullptr && !is_live(key);
      if (is_orphan && OwnCpus(allocation).Intersects(wanted)) {
        in_the_way_.insert(key.pod_uid);
      }
    }
  }

  // A plugin rejects a restored grant whose CPUs it holds for another container. Other allocations
  // without a container can wait: the reconcile releases them when the plugin is live.
  void ReleaseNext() {
    if (in_the_way_.empty()) {
      TeachNext();
      return;
    }
    client_->Ask<calls::RemovePod>(
        in_the_way_.extract(in_the_way_.begin()).value(), Deadline(),
        [self = shared_from_this()](const calls::CallResult<calls::Nothing>& removed) {
          removed.value.ok() ? self->ReleaseNext() : self->ready_();
        });
  }

  void TeachNext() {
    calls::Restore::Request request;
    while (!missing_.empty() && request.grants.size() < kBatch) {
      request.grants.insert(missing_.extract(missing_.begin()));
    }
    if (!request.grants.empty()) {
      log::Info("restoring a plugin's allocations",
                {{"resource", plugin_.resource}, {"containers", request.grants.size()}});
    }
    client_->Ask<calls::Restore>(
        std::move(request), Deadline(),
        [self = shared_from_this()](const calls::CallResult<calls::Nothing>& taught) {
          taught.value.ok() && !self->missing_.empty() ? self->TeachNext() : self->ready_();
        });
  }

  const PluginInfo plugin_;
  const std::shared_ptr<PluginClient> client_;
  const placement::AdmissionOptions options_;
  const std::function<void()> ready_;
  std::set<std::string> in_the_way_;  ///< UIDs
  sdk::Grants missing_;
};

}  // namespace

void TeachPlugin(const PluginInfo& plugin, const std::shared_ptr<PluginClient>& client,
                 const TeachingParts& parts, std::function<void()> ready) {
  if (plugin.registered_by == RegisteredBy::kBuiltIn) {
    ready();  // it started with the records
    return;
  }
  std::make_shared<Resync>(plugin, client, parts.options, std::move(ready))->Begin(parts);
}

}  // namespace qrm::manager
