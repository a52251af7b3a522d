// Makes and starts the plugins inside qrmd.
#include "manager/daemon/builtin_plugins.h"

#include <utility>

#include <fmt/format.h>

#include "plugins/cpu/cpu_plugin.h"
#include "plugins/memory/memory_plugin.h"
#include "plugins/nic/addresses.h"
#include "plugins/nic/nic_plugin.h"
#include "plugins/sdk/plugin_state.h"
#include "plugins/sdk/running_plugin.h"

namespace qrm::manager {
namespace {

StatusOr<BuiltinPlugin> MakeCpu(const config::Section& section, const Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const cpu::CpuPluginConfig config, cpu::ParseCpuConfig(section));
  QRM_ASSIGN_OR_RETURN(auto plugin, cpu::MakeCpuPlugin(config, machine));
  return BuiltinPlugin{cpu::kResource, std::move(plugin)};
}

StatusOr<BuiltinPlugin> MakeMemory(const config::Section& section, const Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const memory::MemoryPluginConfig config, memory::ParseMemoryConfig(section));
  QRM_ASSIGN_OR_RETURN(auto plugin, memory::MakeMemoryPlugin(config, machine));
  return BuiltinPlugin{memory::kResource, std::move(plugin)};
}

StatusOr<BuiltinPlugin> MakeNic(const config::Section& section, const Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const nic::NicPluginConfig config, nic::ParseNicConfig(section));
  QRM_ASSIGN_OR_RETURN(const nic::AddressesByInterface addresses, nic::ReadAddresses());
  QRM_ASSIGN_OR_RETURN(auto plugin, nic::MakeNicPlugin(config, machine, addresses));
  return BuiltinPlugin{config.resource, std::move(plugin)};
}

StatusOr<BuiltinPlugin> MakeBuiltin(const std::string& name, const config::Section& section,
                                    const Machine& machine) {
  if (name == "cpu") {
    return MakeCpu(section, machine);
  }
  return name == "memory" ? MakeMemory(section, machine) : MakeNic(section, machine);
}

}  // namespace

StatusOr<std::vector<BuiltinPlugin>> MakeBuiltinPlugins(const Config& config,
                                                        const Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const config::Section defaults, config::Section::Parse("", "the defaults"));
  std::vector<BuiltinPlugin> builtins;
  for (const std::string& name : config.builtin_plugins) {
    const auto section = config.plugins.find(name);
    QRM_ASSIGN_OR_RETURN(
        BuiltinPlugin builtin,
        MakeBuiltin(name, section == config.plugins.end() ? defaults : section->second, machine));
    builtins.push_back(std::move(builtin));
  }
  return builtins;
}

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
