// Writes the line of each subsystem.
#include "manager/observability/subsystems.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/base/log.h"
#include "api/base/repeated_lines.h"
#include "manager/classes/class_choice.h"
#include "manager/registry/plugin_info.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {
namespace {

/// "1 plugin", "2 plugins".
std::string Count(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string RuntimeText(const RuntimeStatus& runtime) {
  const std::string name = runtime.runtime.name.empty()
                               ? "not known yet"
                               : runtime.runtime.name + " " + runtime.runtime.version;
  return fmt::format("{}, CRI {}", name, runtime.cri_reachable ? "reachable" : "not reachable");
}

std::string NriText(const RuntimeStatus& runtime) {
  return fmt::format("{}, {}, {}", runtime.nri_connected ? "connected" : "not connected",
                     Count(runtime.nri_connects, "connect"),
                     Count(runtime.nri_disconnects, "disconnect"));
}

std::string KubeletText(const NodeStatus& status) {
  if (!status.kubelet_conflicts.empty()) {
    return "kubelet pins containers itself, so qrmd stands aside";
  }
  return status.requests.estimated() ? "requests estimated"
                                     : "requests from " + status.requests.source;
}

/// Plugins, or compute drivers.
std::string PluginsText(const std::vector<PluginInfo>& plugins, bool drivers) {
  uint64_t live = 0;
  uint64_t suspect = 0;
  uint64_t away = 0;
  for (const PluginInfo& plugin : plugins) {
    if (sdk::IsDriverResource(plugin.resource) == drivers) {
      ++(!plugin.live ? away : plugin.problem.empty() ? live : suspect);
    }
  }
  if (live + suspect + away == 0) {
    return "none";
  }
  return fmt::format("{} live{}{}", live, suspect == 0 ? "" : fmt::format(", {} suspect", suspect),
                     away == 0 ? "" : fmt::format(", {} not running", away));
}

std::string ClassesText(const std::vector<ClassTypeStatus>& types) {
  if (types.empty()) {
    return "none";
  }
  uint64_t users = 0;
  uint64_t unmet = 0;
  for (const ClassTypeStatus& type : types) {
    unmet += type.work.problems.size();
    for (const auto& [name, count] : type.users) {
      users += count;
    }
  }
  return fmt::format("{}, {}{}", Count(types.size(), "type"), Count(users, "user"),
                     unmet == 0 ? "" : fmt::format(", {} without all values", unmet));
}

std::string StateText(const NodeStatus& status, const SubsystemFacts& facts) {
  std::string text = Count(facts.pods, "pod") + " with " + Count(facts.containers, "container");
  const auto add = [&text](std::size_t count, std::string_view what) {
    text += count == 0 ? "" : fmt::format(", {} {}", count, what);
  };
  add(status.unplaced_containers, "unpinned");
  add(status.incomplete_containers, "incomplete");
  add(status.pending_containers, "pending");
  add(facts.pending_removals, "to be removed by plugins that are not running");
  return text;
}

std::string AboutText(Subsystem subsystem, const NodeStatus& status, const SubsystemFacts& facts) {
  const PublishStatus& publish = status.publish;
  switch (subsystem) {
    case Subsystem::kQrmd:
      return "version " + status.version;
    case Subsystem::kRuntime:
      return RuntimeText(status.runtime);
    case Subsystem::kNri:
      return NriText(status.runtime);
    case Subsystem::kKubelet:
      return KubeletText(status);
    case Subsystem::kPlugins:
      return PluginsText(facts.plugins, /*drivers=*/false);
    case Subsystem::kDrivers:
      return PluginsText(facts.plugins, /*drivers=*/true);
    case Subsystem::kClasses:
      return ClassesText(facts.classes);
    case Subsystem::kState:
      return StateText(status, facts);
    case Subsystem::kDisk:
      return status.state_path;
    case Subsystem::kApiServer:
      if (!publish.enabled) {
        return "not used";
      }
      return publish.reached ? "reachable" : "not reachable";
    case Subsystem::kCluster:
      break;
  }
  return publish.enabled ? Count(publish.writes, "write") + ", " + Count(publish.events, "event")
                         : "nothing published";
}

std::string NextCommand(Subsystem subsystem, const NodeStatus& status) {
  switch (subsystem) {
    case Subsystem::kPlugins:
    case Subsystem::kDrivers:
      return "qrmctl plugins";
    case Subsystem::kClasses:
      return "qrmctl classes";
    case Subsystem::kState:
      return "qrmctl pods";
    case Subsystem::kDisk:
      return "df -h " + status.state_path;
    case Subsystem::kApiServer:
      return "kubectl get --raw /readyz";
    case Subsystem::kCluster:
      return "kubectl get nodes,noderesourcetopologies";
    case Subsystem::kQrmd:
      return "qrmctl bundle";
    case Subsystem::kRuntime:
    case Subsystem::kNri:
    case Subsystem::kKubelet:
      break;
  }
  return "qrmctl doctor";
}

Health WholeHealth(const NodeStatus& status) {
  if (!status.ready()) {
    return Health::kFailing;
  }
  return status.degraded_reasons.empty() ? Health::kOk : Health::kDegraded;
}

}  // namespace

std::string RequestsStatus::problem() const {
  if (!estimated() || accepted) {
    return "";
  }
  return fmt::format(
      "requests of pods are estimated from cgroup values, because kubelet does not report pod "
      "specs: containers are admitted one by one instead of whole pods, and extended resources and "
      "priorities are unknown; {}",
      uses_url ? "kubelet-url does not answer: check its address, token and certificate; "
                 "qrmd's log has the error"
               : "switch on kubelet's feature gate PodsAPI (Kubernetes 1.36), or set kubelet-url "
                 "(Kubernetes 1.33)");
}

std::string_view ToString(Subsystem subsystem) {
  constexpr std::array<std::string_view, kSubsystemCount> kNames = {
      "qrmd",    "runtime", "NRI",  "kubelet",    "plugins", "drivers",
      "classes", "state",   "disk", "API server", "cluster"};
  return kNames.at(static_cast<std::size_t>(subsystem));
}

std::string_view ToString(Health health) {
  switch (health) {
    case Health::kOk:
      return "ok";
    case Health::kDegraded:
      return "degraded";
    case Health::kFailing:
      break;
  }
  return "failing";
}

std::vector<SubsystemStatus> SubsystemsOf(const NodeStatus& status, const SubsystemFacts& facts) {
  std::array<Health, kSubsystemCount> health = status.health;
  if (const Health whole = WholeHealth(status);
      *std::max_element(health.begin(), health.end()) < whole) {
    health.at(static_cast<std::size_t>(Subsystem::kQrmd)) = whole;
  }
  std::vector<SubsystemStatus> lines;
  lines.reserve(kSubsystemCount);
  for (std::size_t i = 0; i < kSubsystemCount; ++i) {
    const auto subsystem = static_cast<Subsystem>(i);
    const bool is_ok = health.at(i) == Health::kOk;
    lines.push_back({.subsystem = subsystem,
                     .health = health.at(i),
                     .about = AboutText(subsystem, status, facts),
                     .next = is_ok ? "" : NextCommand(subsystem, status)});
  }
  return lines;
}

void HealthWatch::Note(std::chrono::steady_clock::time_point now,
                       std::vector<SubsystemStatus>& lines) {
  const MutexLock lock(mutex_);
  for (SubsystemStatus& line : lines) {
    std::optional<Seen>& seen = seen_.at(static_cast<std::size_t>(line.subsystem));
    if (!seen.has_value() || seen->health != line.health) {
      seen = {.health = line.health, .since = now};
    }
    line.since = seen->since;
  }
}

std::vector<std::string> ReasonLog::Note(const NodeStatus& status) {
  std::vector<std::string> changes;
  Compare(Kind::kNotReady, status.not_ready_reasons, not_ready_, changes);
  Compare(Kind::kDegraded, status.degraded_reasons, degraded_, changes);
  return changes;
}

void ReasonLog::Compare(Kind kind, const std::vector<std::string>& now, Reasons& known,
                        std::vector<std::string>& changes) {
  const bool is_degraded = kind == Kind::kDegraded;
  Reasons next;
  for (const std::string& reason : now) {
    next.emplace(WithoutNumbers(reason), reason);
  }
  for (const auto& [key, reason] : next) {
    if (known.contains(key)) {
      continue;
    }
    changes.push_back((is_degraded ? "degraded: " : "not ready: ") + reason);
    if (is_degraded) {
      log::Warning("degraded", {{"reason", reason}});
    } else {
      log::Error("not ready", {{"reason", reason}});
    }
  }
  for (const auto& [key, reason] : known) {
    if (!next.contains(key)) {
      changes.push_back((is_degraded ? "no longer degraded: " : "no longer not ready: ") + reason);
      log::Info(is_degraded ? "no longer degraded" : "no longer not ready", {{"reason", reason}});
    }
  }
  known = std::move(next);
}

}  // namespace qrm::manager
