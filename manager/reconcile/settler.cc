// Resyncs each plugin with one call after the other.
#include "manager/reconcile/settler.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "api/base/clock.h"
#include "api/base/log.h"
#include "manager/registry/plugins.h"
#include "plugins/placement/recorded_grants.h"

namespace qrm::manager {

using checkpoint::ContainerRecord;
using checkpoint::NodeState;

namespace {

using Done = std::function<void(Status)>;

/// The grants of `keys` to restore in the plugin, as far as they are still recorded.
sdk::Grants GrantsOf(const NodeState& state, const std::vector<ContainerKey>& keys,
                     const std::string& resource, const placement::AdmissionOptions& options) {
  sdk::Grants grants;
  for (const ContainerKey& key : keys) {
    const ContainerRecord* record = state.Find(key);
    if (record != nullptr && placement::Holds(*record, resource)) {
      grants.emplace(key, RecordedGrant(state.FindPod(key.pod_uid)->meta, key.container, *record,
                                        resource, options));
    }
  }
  return grants;
}

void WarnOfDifference(const sdk::Grant& recorded, const AllocationByResource& answer) {
  const std::string& resource = recorded.request.resource;
  const auto given = answer.find(resource);
  const Shared<ResourceAllocation> now =
      given == answer.end() ? Shared<ResourceAllocation>() : given->second;
  if (now->value == recorded.allocation->value && now->quantity == recorded.allocation->quantity) {
    return;
  }
  log::Warning("plugin lost an allocation and made a different one",
               {{"resource", resource},
                {"pod", recorded.request.key.pod_uid},
                {"container", recorded.request.key.container},
                {"recorded", recorded.allocation->value},
                {"given", now->value}});
}

}  // namespace

// Nothing is restored before the runtime has reported all containers: a record may belong to a
// removed pod, and its plugin may have given the CPUs to another container since.
void Settler::Settle(const ReconcilePlan& plan) {
  std::erase_if(taught_, [&](const auto& entry) { return !plan.missing.contains(entry.first); });
  std::set<std::string> resources;
  for (const auto& [resource, keys] : plan.missing) {
    resources.insert(resource);
  }
  for (const auto& [resource, keys] : plan.orphans) {
    resources.insert(resource);
  }
  for (const std::string& resource : resources) {
    if (under_way_.contains(resource)) {
      continue;
    }
    Steps steps;  // releases first: restored allocations may need the released resources
    const auto orphans = plan.orphans.find(resource);
    if (orphans != plan.orphans.end()) {
      AddReleases(resource, orphans->second, steps);
    }
    const auto missing = plan.missing.find(resource);
    const bool teaches_anew = steps.size() < kCallsPerRun && parts_.live.synchronized() &&
                              missing != plan.missing.end() &&
                              AddTeaching(resource, missing->second, steps);
    steps.resize(std::min(steps.size(), kCallsPerRun));
    if (!steps.empty()) {
      under_way_.emplace(resource, std::move(steps));
      Next(resource, teaches_anew);
    }
  }
}

// False if the plugin got these allocations before and still does not list them: they are then
// restored each period, but not at once.
bool Settler::AddTeaching(const std::string& resource, const std::set<ContainerKey>& missing,
                          Steps& steps) {
  std::set<ContainerKey>& taught = taught_[resource];
  const bool again = std::includes(taught.begin(), taught.end(), missing.begin(), missing.end());
  if (again) {
    problems_.push_back(fmt::format(
        "the {} plugin does not list the restored allocations of {} containers, such as {} of pod "
        "{}, which keep them; restart the plugin, or report it to its author",
        resource, missing.size(), missing.begin()->container, missing.begin()->pod_uid));
  }
  taught.insert(missing.begin(), missing.end());
  std::vector<ContainerKey> batch;
  for (const ContainerKey& key : missing) {
    batch.push_back(key);
    if (batch.size() == kGrantsPerCall || key == *missing.rbegin()) {
      steps.emplace_back([this, resource, keys = std::exchange(batch, {})](const Done& done) {
        Teach(resource, keys, done);
      });
    }
  }
  return !again;
}

// Nothing is released before the runtime has reported all containers: a running container may have
// lost its record. It is admitted again and keeps its plugins' allocations. Nor is anything
// released before the checkpoint could be read, because it may have the record.
void Settler::AddReleases(const std::string& resource, const std::set<ContainerKey>& orphans,
                          Steps& steps) {
  if (!parts_.live.synchronized() || !parts_.state.known()) {
    return;
  }
  const auto state = parts_.state.Load();
  std::string last_pod;
  for (const ContainerKey& key : orphans) {
    const bool pod_is_known =
        state->FindPod(key.pod_uid) != nullptr || parts_.live.HasPod(key.pod_uid);
    const auto pending = state->pending_removals().find(key.pod_uid);
    const bool is_replayed = !pod_is_known && pending != state->pending_removals().end() &&
                             pending->second.contains(resource);
    const bool goes_with_pod = !pod_is_known && key.pod_uid == last_pod;
    if (!goes_with_pod && !is_replayed && !unreleasable_.contains({resource, key})) {
      steps.emplace_back([this, resource, key](const Done& done) { Release(resource, key, done); });
    }
    last_pod = key.pod_uid;
  }
}

void Settler::Teach(const std::string& resource, const std::vector<ContainerKey>& keys,
                    const Done& done) {
  const std::optional<PluginInfo> plugin = parts_.plugins.Find(resource);
  if (!plugin.has_value()) {
    done(OkStatus());
    return;
  }
  if (untaught_.contains(plugin->endpoint)) {
    Steps& steps = under_way_[resource];
    for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
      steps.insert(steps.begin(), [this, resource, key = *key](const Done& one_done) {
        TeachByAllocate(resource, key, one_done);
      });
    }
    done(OkStatus());
    return;
  }
  calls::Restore::Request request{
      .grants = GrantsOf(*parts_.state.Load(), keys, resource, parts_.admission)};
  log::Info("restoring a plugin's allocations",
            {{"resource", resource}, {"containers", request.grants.size()}});
  parts_.plugins.Ask<calls::Restore>(
      resource, std::move(request), DeadlineAfter(parts_.admission.plugin_call_deadline),
      [self = shared_from_this(), resource, keys, done,
       endpoint = plugin->endpoint](const StatusOr<calls::Nothing>& taught) {
        if (taught.status().code() != StatusCode::kUnimplemented) {
          done(taught.status());
          return;
        }
        self->parts_.state.Post([self, resource, keys, done, endpoint] {
          self->untaught_.insert(endpoint);
          self->Teach(resource, keys, done);
        });
      });
}

// For plugins without Restore, which is not part of the plugin API.
void Settler::TeachByAllocate(const std::string& resource, const ContainerKey& key,
                              const Done& done) {
  const std::optional<PluginInfo> plugin = parts_.plugins.Find(resource);
  sdk::Grants grants = plugin.has_value()
                           ? GrantsOf(*parts_.state.Load(), {key}, resource, parts_.admission)
                           : sdk::Grants();
  if (!plugin.has_value() || grants.empty()) {
    done(OkStatus());
    return;
  }
  sdk::Grant& grant = grants.begin()->second;
  if (plugin->options.with_topology_alignment && !grant.request.hint.has_value()) {
    grant.request.hint = {.nodes = parts_.machine.node_mask(), .preferred = true};
  }
  ContainerRequest request = grant.request;
  parts_.plugins.Ask<calls::Allocate>(resource, std::move(request),
                                      DeadlineAfter(parts_.admission.plugin_call_deadline),
                                      [done, grant](const StatusOr<AllocationByResource>& answer) {
                                        if (answer.ok()) {
                                          WarnOfDifference(grant, *answer);
                                        }
                                        done(answer.status());
                                      });
}

void Settler::Release(const std::string& resource, const ContainerKey& key, const Done& done) {
  const auto state = parts_.state.Load();
  const ContainerRecord* const record = state->Find(key);
  if (record != nullptr ? placement::Holds(*record, resource) : parts_.live.Find(key).has_value()) {
    done(OkStatus());
    return;
  }
  const Deadline deadline = DeadlineAfter(parts_.admission.release_deadline);
  const auto released = [self = shared_from_this(), resource, key,
                         done](const StatusOr<calls::Nothing>& answer) {
    self->parts_.state.Post([self, resource, key, done, status = answer.status()] {
      self->Released(resource, key, status, done);
    });
  };
  if (state->FindPod(key.pod_uid) != nullptr || parts_.live.HasPod(key.pod_uid)) {
    parts_.plugins.Ask<calls::ReleaseContainer>(resource, key, deadline, released);
  } else {
    parts_.plugins.Ask<calls::RemovePod>(resource, key.pod_uid, deadline, released);
  }
}

void Settler::Released(const std::string& resource, const ContainerKey& key, const Status& released,
                       const Done& done) {
  if (released.ok()) {
    log::Info("released a plugin's allocation of an unknown container",
              {{"resource", resource}, {"pod", key.pod_uid}, {"container", key.container}});
  }
  const bool impossible = released.code() == StatusCode::kUnimplemented;
  if (impossible) {
    unreleasable_.insert({resource, key});
  }
  done(impossible ? OkStatus() : released);
}

void Settler::Next(const std::string& resource, bool teaches_anew) {
  Steps& steps = under_way_[resource];
  if (stopped_ || steps.empty()) {
    End(resource, teaches_anew);
    return;
  }
  const Step step = std::move(steps.front());
  steps.erase(steps.begin());
  step([self = shared_from_this(), resource, teaches_anew](const Status& done) {
    self->parts_.state.Post([self, resource, teaches_anew, done] {
      if (!done.ok()) {
        self->problems_.push_back(MessageOf(
            Annotate(done, "cannot resync the " + resource + " plugin with the checkpoint")));
        self->under_way_[resource].clear();
      }
      self->Next(resource, teaches_anew && done.ok());
    });
  });
}

void Settler::End(const std::string& resource, bool taught) {
  under_way_.erase(resource);
  if (taught && !stopped_) {
    parts_.on_taught(resource);
  }
}

}  // namespace qrm::manager
