// Starts the plugins inside qrmd with what the checkpoint records, and configures them anew.
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

/// What built-in plugins begin with, and where goes what they keep.
struct BuiltinRecords {
  /// As the checkpoint has it, before it was made to fit the machine: plugins make theirs fit.
  const checkpoint::NodeState& found;
  StateLoop& state;  ///< outlives the plugins
  const placement::AdmissionOptions& admission;
  std::string state_dir;
};

/// Runs `builtin`, which outlives the result. It keeps nothing on disk: its grants are the records
/// of `records`. The database of a plugin process that served the resource before is moved aside,
/// since it would be out of date when that process comes back; what it kept beside its grants is
/// taken over where the checkpoint has nothing. Errors: what the plugin answers when it is given
/// its grants back.
StatusOr<std::unique_ptr<LocalPlugin>> StartBuiltin(const BuiltinPlugin& builtin,
                                                    const BuiltinRecords& records,
                                                    LocalPlugin::Parts parts);

/// Runs `builtins`, which outlive the result, as StartBuiltin does, and adds them to `registry`.
/// One that cannot serve is logged, and `warnings` says so.
LocalPlugins StartBuiltins(const std::vector<BuiltinPlugin>& builtins,
                           const BuiltinRecords& records, const LocalPlugin::Parts& parts,
                           Registry& registry, std::vector<std::string>& warnings);

/// Puts `fresh`, plugins of another configuration, in the place of those of `running` that serve
/// their resources. Each begins with all that was given, as after a restart, and no call comes
/// between: all of them are replaced, or none. Reconciles bring to the containers what changed.
/// Errors: that of the first that cannot; kFailedPrecondition for a resource that none of `running`
/// serves.
///
/// Threads: one at a time, none of the plugins'; waits for calls in progress.
Status ReplaceBuiltins(std::vector<BuiltinPlugin> fresh, const LocalPlugins& running);

/// What would be otherwise if `fresh` were put there, as ReplaceBuiltins does; nothing changes.
/// Errors and threads: as ReplaceBuiltins.
StatusOr<ConfigTrial> TryBuiltins(std::vector<BuiltinPlugin> fresh, const LocalPlugins& running);

/// Teaches the built-in ones of `plugins` all that `state` records of them, for a checkpoint that
/// could be read only after their start. Calls that begin later find them taught.
void TeachBuiltins(Plugins& plugins, const checkpoint::NodeState& state,
                   const placement::AdmissionOptions& admission);

}  // namespace qrm::manager
