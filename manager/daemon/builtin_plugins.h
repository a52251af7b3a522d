// The plugins that run inside qrmd: the same code as their programs, without sockets.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/config/config.h"
#include "manager/registry/calls/local_plugin.h"
#include "plugins/sdk/plugin.h"
#include "topology/machine.h"

namespace qrm::manager {

/// A plugin, made but not running.
struct BuiltinPlugin {
  std::string resource;
  std::unique_ptr<sdk::ResourcePlugin> plugin;
};

/// The plugins that `config` asks for, on `machine`. Errors: kInvalidArgument with file, line and
/// key when a plugin's section is wrong or does not fit the machine.
StatusOr<std::vector<BuiltinPlugin>> MakeBuiltinPlugins(const Config& config,
                                                        const Machine& machine);

/// Runs `builtin`, which outlives the result, with its state in `state_dir`. A state that cannot be
/// opened is no reason to stop: the plugin then gives nothing new until the disk allows it, and
/// `warnings` says so. Errors: what the plugin answers when it is given its grants back.
StatusOr<std::unique_ptr<LocalPlugin>> StartBuiltin(const BuiltinPlugin& builtin,
                                                    const std::string& state_dir,
                                                    LocalPlugin::Parts parts,
                                                    std::vector<std::string>& warnings);

}  // namespace qrm::manager
