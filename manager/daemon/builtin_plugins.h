// The plugins that run inside qrmd: the same code as their programs, without sockets.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/section.h"
#include "api/base/status.h"
#include "api/id_set.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::config {
struct MachineConfig;
}  // namespace qrm::config

namespace qrm::cpu {
struct CpuUsage;
}  // namespace qrm::cpu

namespace qrm::manager {

class LocalPlugin;
class Plugins;

/// The names of all plugins that can run inside qrmd.
std::vector<std::string> BuiltinNames();

/// In `required`: all built-in plugins.
inline constexpr char kAllBuiltin[] = "builtin";

struct BuiltinOptions {
  std::vector<std::string> plugins = BuiltinNames();  ///< the plugins that run inside qrmd
  /// The resources of the required plugins. kAllBuiltin: of all `plugins`.
  std::vector<std::string> required = {kAllBuiltin};
  /// Plugin -> its section, which the plugin reads.
  std::map<std::string, config::Section> sections;
};

std::vector<config::ConfigKey> BuiltinKeys(BuiltinOptions& options);

/// A plugin that was created but does not run yet.
struct BuiltinPlugin {
  std::string resource;
  std::unique_ptr<sdk::ResourcePlugin> plugin;
  std::string place;  ///< FILE:LINE of its section
};

/// The running plugins, by their resource.
using LocalPlugins = std::map<std::string, std::unique_ptr<LocalPlugin>>;

/// The plugins that `options` list, on `machine`. Errors: kInvalidArgument with file, line and key
/// when a plugin's section is wrong or does not fit the machine.
StatusOr<std::vector<BuiltinPlugin>> MakeBuiltinPlugins(const BuiltinOptions& options,
                                                        const Machine& machine);

/// The plugins of `former` whose sections differ in `next`, created from `next`. Errors: as
/// MakeBuiltinPlugins; kFailedPrecondition when NetnsAnnotations would change.
StatusOr<std::vector<BuiltinPlugin>> MakeChangedPlugins(const BuiltinOptions& former,
                                                        const BuiltinOptions& next,
                                                        const Machine& machine);

/// The reserved CPUs of the built-in cpu plugin. Empty if that plugin is not built in or reserves
/// none, or if `source` is not the machine that qrmd runs on. Errors: kInvalidArgument when the
/// plugin's section is wrong.
StatusOr<CpuSet> ReservedCpus(const BuiltinOptions& options, const config::MachineConfig& source,
                              const Machine& machine);

/// The annotation by which the built-in nic plugin names network namespaces; empty if that plugin
/// is not built in. Errors: kInvalidArgument when the plugin's section is wrong.
StatusOr<std::vector<std::string>> NetnsAnnotations(const BuiltinOptions& options);

/// The pools and the use of CPUs of the built-in cpu plugin; absent if that plugin is not built in.
std::optional<cpu::CpuUsage> BuiltinCpuUsage(Plugins& plugins);

/// The resources of the plugins that `options` require; `builtins` were created from `options`.
std::vector<std::string> RequiredResources(const BuiltinOptions& options,
                                           const std::vector<BuiltinPlugin>& builtins);

}  // namespace qrm::manager
