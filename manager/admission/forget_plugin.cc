// Drops a plugin's records, then its endpoint.
#include "manager/admission/forget_plugin.h"

#include <optional>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "manager/registry/plugins.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {

using checkpoint::PluginRecords;

StatusOr<PluginRecords> RecordsToForget(const std::string& resource,
                                        const checkpoint::NodeState& state,
                                        const Plugins& plugins) {
  const std::optional<PluginInfo> plugin = plugins.Find(resource);
  if (plugin.has_value() && plugin->live) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot forget plugin {}: it is live at {}; {} first", resource, plugin->endpoint,
                  plugin->registered_by == RegisteredBy::kBuiltIn
                      ? "take it out of builtin-plugins and restart qrmd"
                      : "stop it");
  }
  PluginRecords records = checkpoint::RecordsOf(state, resource);
  if (!plugin.has_value() && records.Empty()) {
    return Errorf(
        StatusCode::kNotFound,
        "cannot forget plugin {}: it is not known; qrmctl plugins lists the known plugins",
        resource);
  }
  return records;
}

StatusOr<PluginRecords> ForgetPlugin(const std::string& resource, StateLoop& state,
                                     Plugins& plugins) {
  QRM_RETURN_IF_ERROR(Annotate(state.Recall(), "cannot forget plugin " + resource));
  const auto before = state.Load();
  QRM_ASSIGN_OR_RETURN(PluginRecords records, RecordsToForget(resource, *before, plugins));
  if (!records.Empty()) {
    const Status saved = state.Commit(checkpoint::ChangeWithout(*before, records));
    QRM_RETURN_IF_ERROR(Annotate(saved, "cannot forget plugin " + resource));
  }
  plugins.Forget(resource);
  log::Info("plugin forgotten", {{"resource", resource},
                                 {"allocations", records.allocations.size()},
                                 {"pending_removals", records.pending_removals.size()}});
  return records;
}

}  // namespace qrm::manager
