// Forgets a plugin that is gone for good.
#pragma once

#include <string>

#include "api/base/status.h"
#include "checkpoint/plugin_records.h"

namespace qrm::manager {

class Plugins;
class StateLoop;

/// Drops all that is on record of the plugin of `resource`, in one transaction, and its place among
/// `plugins`; returns what that was. Its containers run on with what they have, which is free for
/// others from then on.
/// Errors: kFailedPrecondition when it is live; kNotFound when nothing is known of it; the store's,
/// and nothing has changed then. Threads: the state loop.
StatusOr<checkpoint::PluginRecords> ForgetPlugin(const std::string& resource, StateLoop& state,
                                                 Plugins& plugins);

/// What ForgetPlugin would drop. Errors: as there, but for the store's. Threads: any.
StatusOr<checkpoint::PluginRecords> RecordsToForget(const std::string& resource,
                                                    const checkpoint::NodeState& state,
                                                    const Plugins& plugins);

}  // namespace qrm::manager
