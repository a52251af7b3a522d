// Opens a plugin's state and runs it.
#include "manager/daemon/start_builtin.h"

#include <utility>

#include <fmt/format.h>

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

}  // namespace qrm::manager
