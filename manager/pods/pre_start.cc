// Asks the driver of a container first, then all its plugins at once.
#include "manager/pods/pre_start.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/cgroup.h"
#include "api/base/log.h"
#include "manager/drivers/driver_choice.h"
#include "manager/registry/plugins.h"
#include "plugins/sdk/calls/compute_calls.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {
namespace {

using checkpoint::ContainerRecord;
using checkpoint::PodMeta;

std::vector<std::string> PluginsToAsk(const ContainerRecord& record, const Plugins& plugins) {
  std::vector<std::string> resources;
  for (const auto& [resource, allocation] : record.allocations) {
    const std::optional<PluginInfo> plugin = plugins.Find(resource);
    if (plugin.has_value() && plugin->options.pre_start_required &&
        !sdk::IsDriverResource(resource)) {
      resources.push_back(resource);
    }
  }
  return resources;
}

std::string CannotStart(const checkpoint::NodeState& state, const ContainerKey& key) {
  const checkpoint::PodRecord* const pod = state.FindPod(key.pod_uid);
  return pod == nullptr
             ? fmt::format("cannot start container {} of pod {}", key.container, key.pod_uid)
             : fmt::format("cannot start container {} of pod {}/{}", key.container,
                           pod->meta.pod_namespace, pod->meta.name);
}

void LogUntold(const ContainerKey& key, const std::string& driver, const Status& told) {
  if (!told.ok()) {
    log::Warning("compute driver rejects a running container", {{"driver", driver},
                                                                {"pod", key.pod_uid},
                                                                {"container", key.container},
                                                                {"error", MessageOf(told)}});
  }
}

Status FirstError(const ByPlugin<calls::Nothing>& answers) {
  for (const auto& [resource, answer] : answers) {
    if (!answer.ok()) {
      return answer.status();
    }
  }
  return OkStatus();
}

void TellDriver(const PreStart::Parts& parts, const ContainerKey& key, Deadline deadline,
                const PreStart::Done& done) {
  const auto state = parts.state.Load();
  const ContainerRecord* record = state->Find(key);
  const std::string driver = record == nullptr ? std::string() : DriverOf(record->allocations);
  if (driver.empty()) {
    done(Status(StatusCode::kAborted, "its pod is gone"));
    return;
  }
  const PodMeta& pod = state->FindPod(key.pod_uid)->meta;
  const LiveContainer container =
      parts.live == nullptr ? LiveContainer() : parts.live->Find(key).value_or(LiveContainer());
  parts.plugins.Ask<calls::ComputeAdd>(
      driver,
      {.resource = driver,
       .key = key,
       .pod_namespace = pod.pod_namespace,
       .pod_name = pod.name,
       .container_id = container.id,
       .cgroup =
           container.cgroups_path.empty() ? std::string() : CgroupPath(container.cgroups_path),
       .cpus = CpuSet::Parse(record->allocations.at(driver)->value).value_or(CpuSet())},
      deadline, [done](const StatusOr<calls::Nothing>& told) { done(told.status()); });
}

}  // namespace

void PreStart::Prepare(const ContainerKey& key, Done done) {
  parts_.hand_over(key, [this, key, done = std::move(done)](const Status& handed_over) {
    if (handed_over.ok()) {
      AskDriver(key, done);
    } else {
      done(Annotate(handed_over, CannotStart(*parts_.state.Load(), key)));
    }
  });
}

void PreStart::TellLate(const std::string& driver) {
  parts_.state.Load()->ForEachPod([&](const checkpoint::PodRecord& pod) {
    for (const auto& [container, record] : pod.containers) {
      if (driver.empty() || DriverOf(record->allocations) == driver) {
        TellChange(parts_, {pod.meta.uid, container}, DeadlineAfter(deadline_));
      }
    }
  });
}

void PreStart::TellChange(const Parts& parts, const ContainerKey& key, Deadline deadline) {
  const auto state = parts.state.Load();
  const ContainerRecord* const record = state->Find(key);
  const std::string driver = record == nullptr ? std::string() : DriverOf(record->allocations);
  const std::optional<PluginInfo> plugin =
      driver.empty() ? std::nullopt : parts.plugins.Find(driver);
  const auto live = parts.live == nullptr ? std::nullopt : parts.live->Find(key);
  if (plugin.has_value() && plugin->live && plugin->options.pre_start_required &&
      live.has_value() && live->started) {
    TellDriver(parts, key, deadline,
               [key, driver](const Status& told) { LogUntold(key, driver, told); });
  }
}

void PreStart::AskDriver(const ContainerKey& key, const Done& done) {
  const auto state = parts_.state.Load();
  const ContainerRecord* record = state->Find(key);
  const std::string driver = record == nullptr ? std::string() : DriverOf(record->allocations);
  const std::optional<PluginInfo> plugin =
      driver.empty() ? std::nullopt : parts_.plugins.Find(driver);
  if (!plugin.has_value() || !plugin->options.pre_start_required) {
    AskPlugins(*state, key, done);
    return;
  }
  TellDriver(parts_, key, DeadlineAfter(deadline_),
             [this, key, what = CannotStart(*state, key), done](const Status& told) {
               if (told.ok()) {
                 AskPlugins(*parts_.state.Load(), key, done);
               } else {
                 done(Annotate(told, what));
               }
             });
}

void PreStart::AskPlugins(const checkpoint::NodeState& state, const ContainerKey& key,
                          const Done& done) {
  const ContainerRecord* record = state.Find(key);
  const std::vector<std::string> resources =
      record == nullptr ? std::vector<std::string>() : PluginsToAsk(*record, parts_.plugins);
  const bool has_classes =
      record != nullptr && parts_.classes != nullptr && !record->classes.empty();
  if (resources.empty() && !has_classes) {
    done(OkStatus());
    return;
  }
  std::string what = CannotStart(state, key);
  if (resources.empty()) {
    GiveClasses(key, what, done);
    return;
  }
  const PodMeta& pod = state.FindPod(key.pod_uid)->meta;
  parts_.plugins.AskAll<calls::PreStartContainer>(
      resources, {.key = key, .pod_namespace = pod.pod_namespace, .pod_name = pod.name},
      DeadlineAfter(deadline_),
      [this, key, has_classes, what = std::move(what),
       done](const ByPlugin<calls::Nothing>& answers) {
        const Status prepared = FirstError(answers);
        if (prepared.ok() && has_classes) {
          GiveClasses(key, what, done);
        } else {
          done(prepared.ok() ? prepared : Annotate(prepared, what));
        }
      });
}

void PreStart::GiveClasses(const ContainerKey& key, const std::string& what, const Done& done) {
  parts_.classes->Prepare(
      key, [what, done](const Status& given) { done(given.ok() ? given : Annotate(given, what)); });
}

}  // namespace qrm::manager
