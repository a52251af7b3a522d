// Starts the plugins inside qrmd.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/registry/calls/local_plugin.h"
#include "manager/registry/registry.h"

namespace qrm::manager {

/// Runs `builtin`, which outlives the result, with its state in `state_dir`. A state that cannot be
/// opened is no reason to stop: the plugin then gives nothing new until the disk allows it, and
/// `warnings` says so. Errors: what the plugin answers when it is given its grants back.
StatusOr<std::unique_ptr<LocalPlugin>> StartBuiltin(const BuiltinPlugin& builtin,
                                                    const std::string& state_dir,
                                                    LocalPlugin::Parts parts,
                                                    std::vector<std::string>& warnings);

/// The plugins that run inside qrmd, by their resource.
using LocalPlugins = std::map<std::string, std::unique_ptr<LocalPlugin>>;

/// Runs `builtins`, which outlive the result, as StartBuiltin does, and adds them to `registry`.
/// One that cannot serve is logged, and `warnings` says so.
LocalPlugins StartBuiltins(const std::vector<BuiltinPlugin>& builtins, const std::string& state_dir,
                           const LocalPlugin::Parts& parts, Registry& registry,
                           std::vector<std::string>& warnings);

}  // namespace qrm::manager
