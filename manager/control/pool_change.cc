// Asks for the pools as they are, sets them, keeps them, and sets them back when that fails.
#include "manager/control/pool_change.h"

#include <optional>

#include "api/base/log.h"

namespace qrm::manager {
namespace {

using Pools = StatusOr<std::vector<sdk::Pool>>;
using Set = calls::SetPools;

/// The pools that `change` names, as `before` has them.
Set::Request Inverse(const Set::Request& change, const std::vector<sdk::Pool>& before) {
  Set::Request inverse{.resource = change.resource};
  for (const sdk::Pool& pool : before) {
    if (change.cpus_by_pool.contains(pool.name)) {
      inverse.cpus_by_pool[pool.name] = ToString(pool.cpus);
    }
  }
  return inverse;
}

void SetBack(Plugins& plugins, const Set::Request& inverse, const Status& cause,
             const PoolsDone& done) {
  plugins.Ask<Set>(inverse.resource, inverse, DeadlineAfter(std::chrono::seconds(2)),
                   [cause, done, resource = inverse.resource](const Pools& pools) {
                     if (!pools.ok()) {
                       log::Error("pools are not what is on disk",
                                  {{"resource", resource}, {"error", MessageOf(pools.status())}});
                     }
                     done(Annotate(cause, "cannot keep the pools of " + resource));
                   });
}

bool IsBuiltIn(const Plugins& plugins, const std::string& resource) {
  const std::optional<PluginInfo> plugin = plugins.Find(resource);
  return plugin.has_value() && plugin->registered_by == RegisteredBy::kBuiltIn;
}

}  // namespace

void ChangePools(Plugins& plugins, NodeServices& node, const Set::Request& change,
                 Deadline deadline, const PoolsDone& done) {
  if (!IsBuiltIn(plugins, change.resource)) {
    plugins.Ask<Set>(change.resource, change, deadline, done);
    return;
  }
  const auto keep = [&plugins, &node, done](const Set::Request& inverse, const Pools& pools) {
    if (!pools.ok()) {
      done(pools);
      return;
    }
    node.KeepPluginValues([&plugins, done, inverse, pools](const Status& kept) {
      kept.ok() ? done(pools) : SetBack(plugins, inverse, kept, done);
    });
  };
  plugins.Ask<calls::GetPools>(
      change.resource, change.resource, deadline,
      [&plugins, change, deadline, done, keep](const Pools& before) {
        if (!before.ok()) {
          done(before);
          return;
        }
        plugins.Ask<Set>(change.resource, change, deadline,
                         [keep, inverse = Inverse(change, *before)](const Pools& pools) {
                           keep(inverse, pools);
                         });
      });
}

}  // namespace qrm::manager
