// Drops the records of a plugin that will not return.
#pragma once

#include <string>

#include "api/base/status.h"
#include "checkpoint/plugin_records.h"

namespace qrm::manager {

class Plugins;
class StateLoop;

/// Drops all records of the plugin of `resource` in one transaction, removes it from `plugins`, and
/// returns the dropped records. Its containers run on with their values, which other containers can
/// get from then on.
/// Errors: kFailedPrecondition if the plugin is live; kNotFound if it is unknown; the store's, with
/// nothing changed. Threads: the state loop.
StatusOr<checkpoint::PluginRecords> ForgetPlugin(const std::string& resource, StateLoop& state,
                                                 Plugins& plugins);

/// What ForgetPlugin would drop. Errors: as ForgetPlugin, except the store's. Threads: any.
StatusOr<checkpoint::PluginRecords> RecordsToForget(const std::string& resource,
                                                    const checkpoint::NodeState& state,
                                                    const Plugins& plugins);

}  // namespace qrm::manager
