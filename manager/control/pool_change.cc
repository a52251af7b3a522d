// Tries the disk, reads the pools, sets and saves them, and restores them if that fails.
#include "manager/control/pool_change.h"

#include <optional>

#include <fmt/format.h>

#include "api/base/log.h"
#include "manager/observability/node_services.h"

namespace qrm::manager {
namespace {

using Pools = StatusOr<std::vector<sdk::Pool>>;
using Set = calls::SetPools;

/// The pools in `change`, with their CPUs in `before`.
Set::Request Inverse(const Set::Request& change, const std::vector<sdk::Pool>& before) {
  Set::Request inverse{.resource = change.resource};
  for (const sdk::Pool& pool : before) {
    if (change.cpus_by_pool.contains(pool.name)) {
      inverse.cpus_by_pool[pool.name] = ToString(pool.cpus);
    }
  }
  return inverse;
}

Status CannotSave(const Status& cause, const std::string& resource) {
  return Annotate(cause, "cannot save the pools of " + resource);
}

void SetBack(Plugins& plugins, const Set::Request& inverse, const Status& cause,
             const PoolsDone& done) {
  plugins.Ask<Set>(inverse.resource, inverse, DeadlineAfter(std::chrono::seconds(2)),
                   [cause, done, resource = inverse.resource](const Pools& pools) {
                     if (!pools.ok()) {
                       log::Error("pools in use differ from the saved pools",
                                  {{"resource", resource}, {"error", MessageOf(pools.status())}});
                     }
                     done(CannotSave(cause, resource));
                   });
}

bool IsBuiltIn(const Plugins& plugins, const std::string& resource) {
  const std::optional<PluginInfo> plugin = plugins.Find(resource);
  return plugin.has_value() && plugin->registered_by == RegisteredBy::kBuiltIn;
}

void TellChange(const PoolChange& change, const Set::Request& before, NodeServices& node) {
  std::string pools;
  for (const auto& [name, cpus] : change.to.cpus_by_pool) {
    const auto former = before.cpus_by_pool.find(name);
    pools += fmt::format("{}{}: {} -> {}", pools.empty() ? "" : "; ", name,
                         former == before.cpus_by_pool.end() ? "none" : former->second,
                         cpus.empty() ? "none" : cpus);
  }
  log::Info("pools changed",
            {{"resource", change.to.resource}, {"pools", pools}, {"by", change.by}});
  node.NoteEvent({.type = "pool",
                  .message = fmt::format("pools of {} set: {}", change.to.resource, pools),
                  .by = change.by});
}

}  // namespace

void ChangePools(Plugins& plugins, NodeServices& node, const PoolChange& change,
                 const PoolsDone& done) {
  const bool is_built_in = IsBuiltIn(plugins, change.to.resource);
  const auto keep = [&plugins, &node, change, done, is_built_in](const Set::Request& inverse,
                                                                 const Pools& pools) {
    const auto end = [&node, change, inverse, done, pools] {
      TellChange(change, inverse, node);
      done(pools);
    };
    if (!pools.ok()) {
      done(pools);
    } else if (!is_built_in) {
      end();
    } else {
      node.KeepPluginValues([&plugins, done, inverse, end](const Status& kept) {
        kept.ok() ? end() : SetBack(plugins, inverse, kept, done);
      });
    }
  };
  const auto set = [&plugins, change, done, keep] {
    plugins.Ask<calls::GetPools>(
        change.to.resource, change.to.resource, change.deadline,
        [&plugins, change, done, keep](const Pools& before) {
          if (!before.ok()) {
            done(before);
            return;
          }
          plugins.Ask<Set>(change.to.resource, change.to, change.deadline,
                           [keep, inverse = Inverse(change.to, *before)](const Pools& pools) {
                             keep(inverse, pools);
                           });
        });
  };
  if (!is_built_in) {
    set();
    return;
  }
  // Once a plugin has other pools, containers follow.
  node.TryDisk([change, done, set](const Status& accepted) {
    accepted.ok() ? set() : done(CannotSave(accepted, change.to.resource));
  });
}

}  // namespace qrm::manager
