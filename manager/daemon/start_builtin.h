// Starts a plugin inside qrmd.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/registry/calls/local_plugin.h"

namespace qrm::manager {

/// Runs `builtin`, which outlives the result, with its state in `state_dir`. A state that cannot be
/// opened is no reason to stop: the plugin then gives nothing new until the disk allows it, and
/// `warnings` says so. Errors: what the plugin answers when it is given its grants back.
StatusOr<std::unique_ptr<LocalPlugin>> StartBuiltin(const BuiltinPlugin& builtin,
                                                    const std::string& state_dir,
                                                    LocalPlugin::Parts parts,
                                                    std::vector<std::string>& warnings);

}  // namespace qrm::manager
