// Opens the plugins' states, runs them and adds them to the registry.
#include "manager/daemon/start_builtin.h"

#include <utility>

#include <fmt/format.h>

#include "api/base/log.h"
#include "plugins/sdk/plugin_state.h"
#include "plugins/sdk/running_plugin.h"

namespace qrm::manager {

StatusOr<std::unique_ptr<LocalPlugin>> StartBuiltin(const BuiltinPlugin& builtin,
                                                    const std::string& state_dir,
                                                    LocalPlugin::Parts parts,
                                                    std::vector<std::string>& warnings) {
  const std::string path = sdk::StatePath({.resource = builtin.resource, .state_dir = state_dir});
  StatusOr<std::unique_ptr<sdk::PluginState>> state = sdk::OpenPluginState(path);
  if (!state.ok()) {
    warnings.push_back(fmt::format("the {} plugin gives nothing new until its disk allows it: {}",
                                   builtin.resource, MessageOf(state.status())));
    state = sdk::AwaitPluginState(path);
  }
  return LocalPlugin::Start(*builtin.plugin, builtin.resource, *std::move(state), std::move(parts));
}

LocalPlugins StartBuiltins(const std::vector<BuiltinPlugin>& builtins, const std::string& state_dir,
                           const LocalPlugin::Parts& parts, Registry& registry,
                           std::vector<std::string>& warnings) {
  LocalPlugins running;
  for (const BuiltinPlugin& builtin : builtins) {
    auto plugin = StartBuiltin(builtin, state_dir, parts, warnings);
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

}  // namespace qrm::manager
