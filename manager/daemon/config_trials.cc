// Creates the plugins as a reload does, asks for their changes, and destroys them.
#include "manager/daemon/config_trials.h"

#include <algorithm>
#include <tuple>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/log.h"
#include "manager/daemon/config.h"
#include "manager/daemon/config_in_force.h"
#include "manager/daemon/process/priority.h"
#include "manager/daemon/start_builtin.h"
#include "topology/machine.h"

namespace qrm::manager {

StatusOr<std::vector<BuiltinPlugin>> ConfigTrials::MakeNext(const BuiltinOptions& next) const {
  QRM_ASSIGN_OR_RETURN(const CpuSet reserved,
                       ReservedCpus(next, parts_.config.machine, parts_.machine));
  QRM_RETURN_IF_ERROR(CheckPriority(parts_.config.process, reserved));
  return MakeChangedPlugins(parts_.in_force.Load()->builtin, next, parts_.machine);
}

StatusOr<ConfigTrials::Comparison> ConfigTrials::Read(const std::string& text,
                                                      const std::string& name) const {
  const std::string file = Quoted(name);
  if (text.size() > kMostConfigBytes) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot try {}: it has {} bytes, and a configuration has at most {}; name a "
                  "configuration of qrmd",
                  file, text.size(), kMostConfigBytes);
  }
  return reader_(text, file);
}

StatusOr<ConfigTrial> ConfigTrials::Try(const Comparison& read) const {
  ReadChanges changes = read();
  log::Info("trying a configuration: nothing changes, even if its plugins log changes now",
            {{"changed_keys", changes.keys.size()}});
  QRM_ASSIGN_OR_RETURN(std::vector<BuiltinPlugin> next, MakeNext(changes.builtin));
  QRM_ASSIGN_OR_RETURN(ConfigTrial trial, TryBuiltins(std::move(next), parts_.local_plugins));
  trial.keys = std::move(changes.keys);
  std::sort(trial.moves.begin(), trial.moves.end(), [](const Move& a, const Move& b) {
    return std::tie(a.pod_namespace, a.pod_name, a.key, a.resource) <
           std::tie(b.pod_namespace, b.pod_name, b.key, b.resource);
  });
  return trial;
}

std::vector<PluginPolicy> ConfigTrials::Policies() const {
  const auto keys = parts_.in_force.Load();
  std::vector<PluginPolicy> policies;
  for (const std::string& plugin : keys->builtin.plugins) {
    PluginPolicy& policy = policies.emplace_back(PluginPolicy{.plugin = plugin, .keys = "{}"});
    const auto section = keys->builtin.sections.find(plugin);
    if (section != keys->builtin.sections.end()) {
      policy.keys = section->second.OneLine();
      policy.place = section->second.Place();
    }
  }
  return policies;
}

}  // namespace qrm::manager
