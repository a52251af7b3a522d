// The only place where a pod becomes requests to plugins: what it asks for, by which names, and
// which pods ask for nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/pod_container.h"
#include "api/resource.h"
#include "plugins/placement/admission_options.h"
#include "plugins/placement/demand.h"
#include "plugins/placement/pod_keys.h"

namespace qrm::placement {

/// Sets role and type of `pod` by its labels and annotations; returns what names the role: "label
/// KEY" or "annotation KEY".
std::string ReadRole(const PodKeys& keys, checkpoint::PodMeta& pod);

/// The name of the container that `pod` calls its main one; empty when it names none.
std::string MainContainerOf(const PodKeys& keys, const checkpoint::PodMeta& pod);

/// The demands of `containers`, in their order: each is `common` with the container's name, type,
/// index, requests and limits. `main` as for TypeOf.
std::vector<ContainerDemand> DemandsOf(const ContainerDemand& common,
                                       const std::vector<PodContainer>& containers,
                                       const std::string& main);

/// Why the container is skipped, naming the configuration key or the pod's own wish; empty when it
/// is not. What the pod says of itself (annotation, priority class, controller) counts where its
/// namespace may opt out. Priority classes and controllers are those of the pod's spec: where only
/// the estimate is known, no pod is skipped for them.
/// Source: the skips of kubelet's QoS resource manager and of Katalyst.
std::string ReasonToSkip(const ContainerDemand& demand, const AdmissionOptions& options);

/// `demand` of a container that is skipped: it requests nothing, and has no role, so that plugins
/// only keep it off reserved and exclusive CPUs. `recorded` is its pod, where other containers of
/// the pod have allocations; or null.
ContainerDemand AskingForNothing(ContainerDemand demand, const checkpoint::PodRecord* recorded);

/// What the container requests, implicitly too, and 0 of each of `natives`, resources that every
/// container uses, that it does not request under any name.
std::map<std::string, double> AllRequests(const ContainerDemand& demand,
                                          const AdmissionOptions& options,
                                          const std::vector<std::string>& natives);

/// What containers request together at their most demanding moment, by AllRequests of each; init
/// containers stand before the others. Source: Kubernetes 1.36, the pod scope's requests.
std::map<std::string, double> TotalRequests(const std::vector<const ContainerDemand*>& containers,
                                            const AdmissionOptions& options,
                                            const std::vector<std::string>& natives);

/// Whether the pod gets `implicit`, by its role or annotation.
bool Applies(const ImplicitResource& implicit, const checkpoint::PodMeta& pod);

/// Which requests go into one call.
enum class Hugepages {
  kApart,       ///< plugins that are processes read one entry only
  kWithMemory,  ///< they are to be on the NUMA nodes of the memory, and have no plugin of their own
};

/// What the plugin of `resource` is asked for `amount` of what the pod calls `requested`.
ContainerRequest MakeRequest(const ContainerDemand& demand, const std::string& resource,
                             Hugepages hugepages, const std::string& requested, double amount,
                             const AdmissionOptions& options);

/// The name of the plugin for what a pod requests as `requested`.
const std::string& PluginNameOf(const std::string& requested, const AdmissionOptions& options);

/// What one of what a pod requests as `requested` is in the plugin's unit.
double ScaleOf(const std::string& requested, const AdmissionOptions& options);

}  // namespace qrm::placement
