// Restores the grants of the plugins, runs them and adds them to the registry.
#include "manager/daemon/start_builtin.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "api/base/clock.h"
#include "api/base/errorf.h"
#include "api/base/log.h"
#include "checkpoint/sqlite/durable_file.h"
#include "plugins/placement/recorded_grants.h"
#include "plugins/sdk/plugin_driver.h"
#include "plugins/sdk/plugin_state.h"
#include "plugins/sdk/running_plugin.h"

namespace qrm::manager {
namespace {

/// Long, because a large node has many grants, and no container waits for this call.
constexpr std::chrono::seconds kTeachingDeadline{10};

std::optional<std::string> RecordedValue(const checkpoint::NodeState& state,
                                         const std::string& resource) {
  const auto found = state.plugin_values().find(resource);
  return found == state.plugin_values().end() ? std::nullopt : std::optional(found->second);
}

/// Moves the database of a plugin process at `path` aside. Returns the value that the process kept
/// beside its grants.
std::optional<std::string> TakeOver(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return std::nullopt;
  }
  std::optional<std::string> saved;
  if (auto former = sdk::OpenPluginState(path); former.ok()) {
    if (StatusOr<sdk::StoredState> stored = (*former)->Load(); stored.ok()) {
      saved = std::move(stored->saved);
    }
  }
  const StatusOr<std::string> aside = checkpoint::MoveAside(path);
  if (aside.ok()) {
    log::Info("state of a plugin process moved aside: the plugin is built in now",
              {{"path", path}, {"to", *aside}});
  } else {
    log::Warning("cannot move the state of a plugin process aside",
                 {{"path", path}, {"error", MessageOf(aside.status())}});
  }
  return saved;
}

/// Replaces several plugins as one change: no call of any of them runs until all are replaced.
class Replacement {
 public:
  Replacement(std::vector<BuiltinPlugin> fresh, std::vector<LocalPlugin*> running)
      : fresh_(std::move(fresh)), running_(std::move(running)) {}

  Status Run() {
    HoldNext();
    return result_;
  }

 private:
  // NOLINTNEXTLINE(misc-no-recursion): one level per plugin
  void HoldNext() {
    const std::size_t held = drivers_.size();
    if (held == fresh_.size()) {
      result_ = ReplaceAll();
      return;
    }
    // NOLINTNEXTLINE(misc-no-recursion): as above
    running_[held]->Run([this](sdk::PluginDriver& driver) {
      drivers_.push_back(&driver);
      HoldNext();
    });
  }

  Status ReplaceAll() {
    for (std::size_t i = 0; i < fresh_.size(); ++i) {
      QRM_RETURN_IF_ERROR(Annotate(drivers_[i]->Prepare(*fresh_[i].plugin), fresh_[i].place));
    }
    for (std::size_t i = 0; i < fresh_.size(); ++i) {
      drivers_[i]->Replace(std::move(fresh_[i].plugin));
    }
    return OkStatus();
  }

  std::vector<BuiltinPlugin> fresh_;
  std::vector<LocalPlugin*> running_;  // in the order of fresh_
  std::vector<sdk::PluginDriver*> drivers_;
  Status result_;
};

/// The plugins of `running` that serve the resources of `fresh`, in the same order.
StatusOr<std::vector<LocalPlugin*>> FormerOf(const std::vector<BuiltinPlugin>& fresh,
                                             const LocalPlugins& running) {
  std::vector<LocalPlugin*> former;
  for (const BuiltinPlugin& plugin : fresh) {
    const auto found = running.find(plugin.resource);
    if (found == running.end()) {
      return Errorf(StatusCode::kFailedPrecondition,
                    "cannot configure the plugin of {}: no such plugin runs inside qrmd; restart "
                    "qrmd",
                    plugin.resource);
    }
    former.push_back(found->second.get());
  }
  return former;
}

/// An allocation as text: "2-3", or "2-3 +6-7" with shared CPUs.
std::string ValueText(const ResourceAllocation& allocation) {
  return allocation.shares.empty() ? allocation.value : allocation.value + " +" + allocation.shares;
}

void AddMoves(const std::string& resource, const sdk::Grants& now, const sdk::Grants& next,
              ConfigTrial& trial) {
  for (const auto& [key, grant] : next) {
    std::string from = ValueText(now.at(key).allocation);
    std::string to = ValueText(grant.allocation);
    if (from != to) {
      trial.moves.push_back({.key = key,
                             .pod_namespace = grant.request.pod_namespace,
                             .pod_name = grant.request.pod_name,
                             .resource = resource,
                             .from = std::move(from),
                             .to = std::move(to)});
    }
  }
}

void AddPools(const std::string& resource, const std::vector<sdk::Pool>& now,
              const std::vector<sdk::Pool>& next, ConfigTrial& trial) {
  std::map<std::string, std::pair<std::string, std::string>> pools;
  for (const sdk::Pool& pool : now) {
    pools[pool.name].first = ToString(pool.cpus);
  }
  for (const sdk::Pool& pool : next) {
    pools[pool.name].second = ToString(pool.cpus);
  }
  for (const auto& [name, cpus] : pools) {
    if (cpus.first != cpus.second) {
      trial.pools.push_back(
          {.resource = resource, .pool = name, .from = cpus.first, .to = cpus.second});
    }
  }
}

Status AddTrial(const BuiltinPlugin& fresh, sdk::PluginDriver& driver, ConfigTrial& trial) {
  QRM_ASSIGN_OR_RETURN(const sdk::PluginDriver::Trial tried, driver.Try(*fresh.plugin));
  QRM_ASSIGN_OR_RETURN(const std::vector<sdk::Pool> pools, driver.Pools());
  AddMoves(fresh.resource, driver.grants(), tried.changed, trial);
  AddPools(fresh.resource, pools, tried.pools, trial);
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<LocalPlugin>> StartBuiltin(const BuiltinPlugin& builtin,
                                                    const BuiltinRecords& records) {
  const std::string& resource = builtin.resource;
  sdk::StoredState begin{.grants = RecordedGrants(records.found, resource, records.admission),
                         .saved = RecordedValue(records.found, resource)};
  std::optional<std::string> former =
      TakeOver(sdk::StatePath({.resource = resource, .state_dir = records.state_dir}));
  if (former.has_value() && !begin.saved.has_value()) {
    records.state.KeepValue(resource, *former);
    begin.saved = std::move(former);
  }
  return LocalPlugin::Start(
      *builtin.plugin, resource,
      sdk::MakeMemoryState(std::move(begin),
                           [&state = records.state, resource](const std::string& saved) {
                             state.KeepValue(resource, saved);
                           }),
      records.state_dir);
}

LocalPlugins StartBuiltins(const std::vector<BuiltinPlugin>& builtins,
                           const BuiltinRecords& records, Registry& registry,
                           std::vector<std::string>& warnings) {
  LocalPlugins running;
  for (const BuiltinPlugin& builtin : builtins) {
    auto plugin = StartBuiltin(builtin, records);
    Status added = plugin.status();
    if (plugin.ok()) {
      added = registry.AddBuiltIn(builtin.resource, **plugin);
      running.emplace(builtin.resource, *std::move(plugin));
    }
    if (!added.ok()) {
      warnings.push_back(MessageOf(Annotate(added, builtin.resource + " is not served")));
      log::Error("built-in plugin not served",
                 {{"resource", builtin.resource}, {"error", MessageOf(added)}});
    }
  }
  return running;
}

Status ReplaceBuiltins(std::vector<BuiltinPlugin> fresh, const LocalPlugins& running) {
  QRM_ASSIGN_OR_RETURN(std::vector<LocalPlugin*> former, FormerOf(fresh, running));
  return Replacement(std::move(fresh), std::move(former)).Run();
}

StatusOr<ConfigTrial> TryBuiltins(std::vector<BuiltinPlugin> fresh, const LocalPlugins& running) {
  QRM_ASSIGN_OR_RETURN(const std::vector<LocalPlugin*> former, FormerOf(fresh, running));
  ConfigTrial trial;
  Status tried;
  for (std::size_t i = 0; i < fresh.size() && tried.ok(); ++i) {
    former[i]->Run([&](sdk::PluginDriver& driver) { tried = AddTrial(fresh[i], driver, trial); });
  }
  return tried.ok() ? StatusOr<ConfigTrial>(std::move(trial)) : tried;
}

void TeachBuiltins(Plugins& plugins, const checkpoint::NodeState& state,
                   const placement::AdmissionOptions& admission) {
  for (const PluginInfo& plugin : plugins.List()) {
    if (plugin.registered_by != RegisteredBy::kBuiltIn) {
      continue;
    }
    calls::Restore::Request request{
        .grants = placement::RecordedGrants(state, plugin.resource, admission),
        .saved = RecordedValue(state, plugin.resource)};
    plugins.Ask<calls::Restore>(
        plugin.resource, std::move(request), DeadlineAfter(kTeachingDeadline),
        [resource = plugin.resource](const StatusOr<calls::Nothing>& taught) {
          if (!taught.ok()) {
            log::Error("cannot resync a built-in plugin",
                       {{"resource", resource}, {"error", MessageOf(taught.status())}});
          }
        });
  }
}

}  // namespace qrm::manager
