// Rules for which containers are skipped, and what containers get beyond their pod's requests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/registry/plugin_info.h"
#include "plugins/placement/admission_options.h"
#include "plugins/placement/demand.h"
#include "plugins/rules/qos_annotations.h"

namespace qrm::manager {

class Plugins;
struct AdmissionEvent;
struct Draft;

/// Adds to `event` the keys of the pod's QoS annotations that have no effect, and the warning.
void NoteIgnoredKeys(const checkpoint::PodMeta& pod, rules::NodeBinding binding,
                     AdmissionEvent& event);

/// True if a container that requests `resource` is not placed without its plugin: the plugin is
/// required, has registered since qrmd started, or is known from the checkpoint. The last does not
/// count for native resources: the plugin may have been switched off for good.
bool NeedsPlugin(const std::string& resource, const placement::AdmissionOptions& options,
                 const Plugins& plugins);

/// Those of native-resources whose plugin a container needs that requests nothing of them.
std::vector<std::string> NeededNatives(const placement::AdmissionOptions& options,
                                       const Plugins& plugins);

/// The error that rejects `demand` because the plugin of `resource` is not live, with the cures.
Status PluginAway(const std::string& resource, const placement::ContainerDemand& demand,
                  const placement::AdmissionOptions& options, const Plugins& plugins);

/// Adds to `draft` the request to the plugin of the resource that its container calls `name`, if
/// that is not on record already and a plugin serves it. Errors: kInvalidArgument for a resource
/// that is requested under two names; kUnavailable for a plugin that is not running;
/// kPermissionDenied.
Status SelectPlugin(Draft& draft, const std::string& name, double amount,
                    const placement::AdmissionOptions& options, const Plugins& plugins);

/// OK if all of required-plugins run, or the container need not wait for them. Errors:
/// kUnavailable.
Status CheckRequired(Draft& draft, const placement::AdmissionOptions& options,
                     const Plugins& plugins);

/// How a container's requests differ from those that it was placed for.
struct Difference {
  bool asks = false;                     ///< plugins have to be asked again
  bool asks_driver = false;              ///< the compute driver that placed it, too
  std::vector<std::string> when_remade;  ///< requests that only a recreated container can get
};

/// What an admission of `demand` would change for the running container of `record`.
[[nodiscard]] Difference Compare(const checkpoint::ContainerRecord& record,
                                 const placement::ContainerDemand& demand,
                                 const placement::AdmissionOptions& options,
                                 const Plugins& plugins);

/// Whether the container of `record` requests `resource`, or every container gets it, but has no
/// allocation: the plugin came later, or its allocation needs a new container.
bool Lacks(const checkpoint::ContainerRecord& record, const std::string& resource,
           const placement::AdmissionOptions& options);

/// The resources that `record` requests because of the configuration, not because of its pod.
std::vector<std::string> ImplicitRequests(const checkpoint::PodMeta& pod,
                                          const checkpoint::ContainerRecord& record,
                                          const placement::AdmissionOptions& options);

}  // namespace qrm::manager
