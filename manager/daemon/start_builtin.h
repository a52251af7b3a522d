// Starts the built-in plugins with their recorded allocations, and replaces their configuration.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "checkpoint/node_state.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/observability/config_trial.h"
#include "manager/registry/calls/local_plugin.h"
#include "manager/registry/plugins.h"
#include "manager/registry/registry.h"
#include "manager/state/state_loop.h"
#include "plugins/placement/admission_options.h"

namespace qrm::manager {

/// The state that built-in plugins start from, and where they keep their changes.
struct BuiltinRecords {
  /// As the checkpoint has it, before it was repaired to fit the machine: plugins do that too.
  const checkpoint::NodeState& found;
  StateLoop& state;  ///< outlives the plugins
  const placement::AdmissionOptions& admission;
  std::string state_dir;  ///< of plugin processes, and passed to the plugins; empty: none
};

/// Runs `builtin`, which outlives the result. The plugin keeps nothing on disk: its grants are in
/// `records`. The database of a plugin process that served the resource before is moved aside,
/// because it would be outdated when that process returns. The value that the process kept beside
/// its grants is used if the checkpoint has none. Errors: the plugin's, when its grants are
/// restored.
StatusOr<std::unique_ptr<LocalPlugin>> StartBuiltin(const BuiltinPlugin& builtin,
                                                    const BuiltinRecords& records);

/// Runs `builtins`, which outlive the result, as StartBuiltin does, and adds them to `registry`.
/// A plugin that cannot start is logged and added to `warnings`.
LocalPlugins StartBuiltins(const std::vector<BuiltinPlugin>& builtins,
                           const BuiltinRecords& records, Registry& registry,
                           std::vector<std::string>& warnings);

/// Replaces plugins of `running` by `fresh`, which serve the same resources with another
/// configuration. Each of them starts with all recorded grants, as after a restart. All are
/// replaced, or none, and no call runs meanwhile. The next reconcile applies the changes to
/// containers. Errors: the first error of a plugin; kFailedPrecondition for a resource that no
/// plugin of `running` serves.
///
/// Threads: one at a time; waits for calls in progress.
Status ReplaceBuiltins(std::vector<BuiltinPlugin> fresh, const LocalPlugins& running);

/// What ReplaceBuiltins would change; nothing changes. Errors and threads: as ReplaceBuiltins.
StatusOr<ConfigTrial> TryBuiltins(std::vector<BuiltinPlugin> fresh, const LocalPlugins& running);

/// Resyncs the built-in plugins of `plugins` with `state`, for a checkpoint that could be read only
/// after their start. Calls that begin later run after the resync.
void TeachBuiltins(Plugins& plugins, const checkpoint::NodeState& state,
                   const placement::AdmissionOptions& admission);

}  // namespace qrm::manager
