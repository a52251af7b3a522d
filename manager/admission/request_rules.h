// Which containers are placed at all, and what they ask for beside what their pod requests.
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

/// Why the container is left alone, naming the configuration key or the pod's own wish; empty when
/// it is not. What the pod says of itself (annotation, priority class, controller) counts where its
/// namespace may opt out. Priority classes and controllers are those of the pod's spec: where only
/// the estimate is known, no pod is skipped for them.
/// Source: the skips of kubelet's QoS resource manager and of Katalyst.
std::string ReasonToSkip(const ContainerDemand& demand, const AdmissionOptions& options);

/// `demand` of a container that is left alone: nothing, and as nobody in particular, so that
/// plugins only keep it off what is reserved or somebody's own. `placed` is its pod, where others
/// of it have a place; or null.
ContainerDemand AskingForNothing(ContainerDemand demand, const checkpoint::PodRecord* placed);

/// True when a container that requests `resource` is not placed without its plugin: a required one,
/// one that has registered since qrmd started, or one that only the checkpoint knows. What every
/// container uses is not asked of the last: the plugin may have been switched off for good.
bool NeedsPlugin(const std::string& resource, const AdmissionOptions& options,
                 const Plugins& plugins);

/// True when the container starts without the plugins that are away, since it may be one of them.
bool RunsWithoutPlugins(const ContainerDemand& demand, const AdmissionOptions& options);

/// Why `demand` is not placed without the plugin of `resource`, which is not live, with the cures.
Status PluginAway(const std::string& resource, const ContainerDemand& demand,
                  const AdmissionOptions& options, const Plugins& plugins);

/// What the container requests, implicitly too, and 0 of each native resource that needs its plugin
/// and that it does not request under any name.
std::map<std::string, double> AllRequests(const ContainerDemand& demand,
                                          const AdmissionOptions& options, const Plugins& plugins);

/// What containers request together at their most demanding moment, by AllRequests of each; init
/// containers stand before the others. Source: Kubernetes 1.36, the pod scope's requests.
std::map<std::string, double> TotalRequests(const std::vector<const ContainerDemand*>& containers,
                                            const AdmissionOptions& options,
                                            const Plugins& plugins);

/// What a container asks for under one name.
struct Ask {
  const std::string& requested;  ///< as the pod calls it
  const std::string& resource;   ///< as the plugin does
  double amount = 0;
  std::optional<double> limit;
};

/// `amount` of what `demand` calls `requested`.
Ask AskOf(const ContainerDemand& demand, const std::string& requested, double amount,
          const AdmissionOptions& options);

/// True when `record` was made for another request than `ask`: for less of it, for more CPUs or
/// another limit of CPUs, or when some of what it gave is gone.
bool Differs(const checkpoint::ContainerRecord& record, const Ask& ask);

/// True when the record of an earlier admission covers `ask`: it was made for that, or gave as
/// much.
bool Satisfies(const checkpoint::ContainerRecord& record, const Ask& ask);

/// Whether the container of `record` has nothing of `resource`, which it requests, or which all
/// get: its plugin came later, or could give only what a running container cannot take.
bool Lacks(const checkpoint::ContainerRecord& record, const std::string& resource,
           const AdmissionOptions& options);

/// The resources that `record` has requests for because of the configuration, not of its pod.
std::vector<std::string> ImplicitRequests(const checkpoint::PodMeta& pod,
                                          const checkpoint::ContainerRecord& record,
                                          const AdmissionOptions& options);

/// What `plugin` is asked. The built-in memory plugin gets the hugepages too: they are to be on the
/// NUMA nodes of the memory, and have no plugin of their own. Other plugins read one entry only.
ContainerRequest MakeRequest(const ContainerDemand& demand, const PluginInfo& plugin,
                             const std::string& requested, double amount,
                             const AdmissionOptions& options);

/// The name of the plugin for what a pod requests as `requested`.
const std::string& PluginNameOf(const std::string& requested, const AdmissionOptions& options);

/// What one of what a pod requests as `requested` is in the plugin's unit.
double ScaleOf(const std::string& requested, const AdmissionOptions& options);

}  // namespace qrm::manager
