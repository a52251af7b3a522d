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
struct PoolStatus;

/// The names of all plugins that can run inside.
std::vector<std::string> BuiltinNames();

/// The word that stands for them among the plugins that are required.
inline constexpr char kAllBuiltin[] = "builtin";

struct BuiltinOptions {
  std::vector<std::string> plugins = BuiltinNames();  ///< those that do
  /// The resources of plugins without which no container is placed; kAllBuiltin: of all `plugins`.
  std::vector<std::string> required = {kAllBuiltin};
  /// Plugin -> its keys, as that plugin reads them.
  std::map<std::string, config::Section> sections;
};

std::vector<config::ConfigKey> BuiltinKeys(BuiltinOptions& options);

/// A plugin, made but not running.
struct BuiltinPlugin {
  std::string resource;
  std::unique_ptr<sdk::ResourcePlugin> plugin;
};

/// The plugins that run, by their resource.
using LocalPlugins = std::map<std::string, std::unique_ptr<LocalPlugin>>;

/// The plugins that `options` ask for, on `machine`. Errors: kInvalidArgument with file, line and
/// key when a plugin's section is wrong or does not fit the machine.
StatusOr<std::vector<BuiltinPlugin>> MakeBuiltinPlugins(const BuiltinOptions& options,
                                                        const Machine& machine);

/// Those of the plugins of `former` whose sections are others in `next`, made of these. Errors: as
/// MakeBuiltinPlugins; kFailedPrecondition when NetnsAnnotations would change.
StatusOr<std::vector<BuiltinPlugin>> MakeChangedPlugins(const BuiltinOptions& former,
                                                        const BuiltinOptions& next,
                                                        const Machine& machine);

/// The CPUs of `machine` that the built-in cpu plugin keeps for the system; none when it is not
/// built in or reserves none, or when `source` is not the machine that qrmd runs on. Errors:
/// kInvalidArgument when its section is wrong.
StatusOr<CpuSet> ReservedCpus(const BuiltinOptions& options, const config::MachineConfig& source,
                              const Machine& machine);

/// The annotation by which the built-in nic plugin names network namespaces; none when it is not
/// built in. Errors: kInvalidArgument when its section is wrong.
StatusOr<std::vector<std::string>> NetnsAnnotations(const BuiltinOptions& options);

/// The pools of the built-in cpu plugin, by what the plugins keep beside their allocations.
std::vector<PoolStatus> BuiltinPools(const BuiltinOptions& options, const StringMap& kept);

/// How the CPUs of the built-in cpu plugin stand, by what it keeps and what it gave; absent where
/// it is not built in or has no section. Errors: kInvalidArgument when its section is wrong. Cost:
/// O(containers).
StatusOr<std::optional<cpu::CpuUsage>> BuiltinCpuUsage(const BuiltinOptions& options,
                                                       const Machine& machine,
                                                       const StringMap& kept,
                                                       const sdk::Grants& grants);

/// The resources of the plugins that `options` require; `builtins` are made from them.
std::vector<std::string> RequiredResources(const BuiltinOptions& options,
                                           const std::vector<BuiltinPlugin>& builtins);

}  // namespace qrm::manager
