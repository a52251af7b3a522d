// Rules for which containers are skipped, and what containers get beyond their pod's requests.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/registry/plugin_info.h"
#include "plugins/placement/admission_options.h"
#include "plugins/placement/demand.h"

namespace qrm::manager {

class Plugins;
struct AdmissionEvent;
struct Draft;

/// Adds to `event` the keys of the pod's QoS annotations that have no effect, and the warning.
void NoteIgnoredKeys(const checkpoint::PodMeta& pod, AdmissionEvent& event);

/// True if a container that requests `resource` is not placed without its plugin: the plugin is
/// required, has registered since qrmd started, or is known from the checkpoint. The last does not
/// count for native resources: the plugin may have been switched off for good.
bool NeedsPlugin(const std::string& resource, const placement::AdmissionOptions& options,
                 const Plugins& plugins);

/// Those of native-resources whose plugin a container needs that requests nothing of them.
std::vector<std::string> NeededNatives(const placement::AdmissionOptions& options,
                                       const Plugins& plugins);

/// True if the container starts also while plugins are not running, since it may be one of them.
bool RunsWithoutPlugins(const placement::ContainerDemand& demand,
                        const placement::AdmissionOptions& options);

/// The error that rejects `demand` because the plugin of `resource` is not live, with the cures.
Status PluginAway(const std::string& resource, const placement::ContainerDemand& demand,
                  const placement::AdmissionOptions& options, const Plugins& plugins);

/// A container's request under one name.
struct Ask {
  const std::string& requested;  ///< the pod's name for it
  const std::string& resource;   ///< the plugin's name for it
  double amount = 0;
  std::optional<double> limit;
};

/// The request of `demand` for `amount` of `requested`.
Ask AskOf(const placement::ContainerDemand& demand, const std::string& requested, double amount,
          const placement::AdmissionOptions& options);

/// True if `record` is for another request than `ask`: for less, for more CPUs, for another CPU
/// limit, or if its allocation has lost something since.
bool Differs(const checkpoint::ContainerRecord& record, const Ask& ask);

/// True if `record` covers `ask`: it is for the same request, or allocates as much.
bool Satisfies(const checkpoint::ContainerRecord& record, const Ask& ask);

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
