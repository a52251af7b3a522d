// Rules for which containers are skipped, and what containers get beyond their pod's requests.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/admission/admission_options.h"
#include "manager/demand/demand_source.h"
#include "manager/registry/plugin_info.h"

namespace qrm::manager {

class Plugins;

/// Why the container is skipped, naming the configuration key or the pod's annotation; empty if it
/// is not. The pod's own data (annotation, priority class, controller) counts only if its namespace
/// may opt out. Priority class and controller are known only with the pod's spec, not with the
/// estimate.
/// Source: the skips of kubelet's QoS resource manager and of Katalyst.
std::string ReasonToSkip(const ContainerDemand& demand, const AdmissionOptions& options);

/// `demand` of a skipped container: no requests, role, labels or annotations, so that plugins only
/// keep it off reserved and exclusive resources. `placed` is the record of its pod; or null.
ContainerDemand AskingForNothing(ContainerDemand demand, const checkpoint::PodRecord* placed);

/// True if a container that requests `resource` is not placed without its plugin: the plugin is
/// required, has registered since qrmd started, or is known from the checkpoint. The last does not
/// count for native resources: the plugin may have been switched off for good.
bool NeedsPlugin(const std::string& resource, const AdmissionOptions& options,
                 const Plugins& plugins);

/// True if the container starts also while plugins are not running, since it may be one of them.
bool RunsWithoutPlugins(const ContainerDemand& demand, const AdmissionOptions& options);

/// The error that rejects `demand` because the plugin of `resource` is not live, with the cures.
Status PluginAway(const std::string& resource, const ContainerDemand& demand,
                  const AdmissionOptions& options, const Plugins& plugins);

/// The container's requests, with implicit ones, and 0 of each native resource that needs its
/// plugin and that the container does not request under any name.
std::map<std::string, double> AllRequests(const ContainerDemand& demand,
                                          const AdmissionOptions& options, const Plugins& plugins);

/// The peak of the containers' requests together, by AllRequests of each; init containers come
/// first in `containers`. Source: Kubernetes 1.36, the pod scope's requests.
std::map<std::string, double> TotalRequests(const std::vector<const ContainerDemand*>& containers,
                                            const AdmissionOptions& options,
                                            const Plugins& plugins);

/// A container's request under one name.
struct Ask {
  const std::string& requested;  ///< the pod's name for it
  const std::string& resource;   ///< the plugin's name for it
  double amount = 0;
  std::optional<double> limit;
};

/// The request of `demand` for `amount` of `requested`.
Ask AskOf(const ContainerDemand& demand, const std::string& requested, double amount,
          const AdmissionOptions& options);

/// True if `record` is for another request than `ask`: for less, for more CPUs, for another CPU
/// limit, or if its allocation has lost something since.
bool Differs(const checkpoint::ContainerRecord& record, const Ask& ask);

/// True if `record` covers `ask`: it is for the same request, or allocates as much.
bool Satisfies(const checkpoint::ContainerRecord& record, const Ask& ask);

/// Whether the container of `record` requests `resource`, or every container gets it, but has no
/// allocation: the plugin came later, or its allocation needs a new container.
bool Lacks(const checkpoint::ContainerRecord& record, const std::string& resource,
           const AdmissionOptions& options);

/// The resources that `record` requests because of the configuration, not because of its pod.
std::vector<std::string> ImplicitRequests(const checkpoint::PodMeta& pod,
                                          const checkpoint::ContainerRecord& record,
                                          const AdmissionOptions& options);

/// The request to `plugin`. The built-in memory plugin also gets the hugepages, which have no
/// plugin and must be on the NUMA nodes of the memory. Other plugins read one entry only.
ContainerRequest MakeRequest(const ContainerDemand& demand, const PluginInfo& plugin,
                             const std::string& requested, double amount,
                             const AdmissionOptions& options);

/// The plugin's name for the resource that a pod calls `requested`.
const std::string& PluginNameOf(const std::string& requested, const AdmissionOptions& options);

/// The plugin's units in one unit of the resource that a pod calls `requested`.
double ScaleOf(const std::string& requested, const AdmissionOptions& options);

}  // namespace qrm::manager
