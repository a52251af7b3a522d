// The only place where a pod becomes requests to plugins: what it asks for, by which names, and
// which pods ask for nothing or need a permission.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/base/status.h"
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
/// index (among the init, app or ephemeral containers), requests and limits. `main` as for TypeOf.
std::vector<ContainerDemand> DemandsOf(const ContainerDemand& common,
                                       const std::vector<PodContainer>& containers,
                                       const std::string& main);

/// Why the container is skipped, naming the configuration key or the pod's annotation; empty if it
/// is not. The pod's own data (annotation, priority class, controller) counts only if its namespace
/// may opt out. Priority class and controller are known only with the pod's spec, not with the
/// estimate.
/// Source: the skips of kubelet's QoS resource manager and of Katalyst.
std::string ReasonToSkip(const ContainerDemand& demand, const AdmissionOptions& options);

/// `demand` of a skipped container: no requests, role, labels or annotations except those that ask
/// for classes, so that plugins only keep it off reserved and exclusive resources. `recorded` is
/// the record of its pod; or null.
ContainerDemand AskingForNothing(ContainerDemand demand, const checkpoint::PodRecord* recorded);

/// The container's requests, with implicit ones, and 0 of each of `natives`, resources that every
/// container uses, that the container does not request under any name.
std::map<std::string, double> AllRequests(const ContainerDemand& demand,
                                          const AdmissionOptions& options,
                                          const std::vector<std::string>& natives);

/// Scope pod: the main one of `containers`, which are in start order, with the peak of the requests
/// of all of them together, by AllRequests of each. Source: Kubernetes 1.36, the pod scope's
/// requests.
ContainerDemand WholePod(const std::vector<const ContainerDemand*>& containers,
                         const AdmissionOptions& options, const std::vector<std::string>& natives);

/// Whether the pod's QoS level is Katalyst's dedicated_cores.
bool IsDedicatedCores(const checkpoint::PodMeta& pod);

/// Whether it is one of the pod's app containers, all but the first of which have the type of
/// sidecars. Without the pod's spec, native sidecars are app containers, too.
bool IsApp(const ContainerDemand& demand);

/// Whether annotations of the pod ask for a compute driver for the container, in case it requests
/// CPUs.
bool AsksForDriver(const ContainerDemand& demand);

/// Whether the pod gets `implicit`, by its role or annotation.
bool Applies(const ImplicitResource& implicit, const checkpoint::PodMeta& pod);

/// The request to the plugin of `resource` for `asked`, a name that the pod uses and its amount.
/// A request for memory also has the hugepages: they have no plugin and must be on the NUMA nodes
/// of the memory.
ContainerRequest MakeRequest(const ContainerDemand& demand, const std::string& resource,
                             const std::pair<const std::string, double>& asked,
                             const AdmissionOptions& options);

/// The plugin's name for the resource that a pod calls `requested`.
const std::string& PluginNameOf(const std::string& requested, const AdmissionOptions& options);

/// The plugin's units in one unit of the resource that a pod calls `requested`.
double ScaleOf(const std::string& requested, const AdmissionOptions& options);

/// OK if the pod's namespace may have what its labels, annotations and `requests` (see AllRequests)
/// ask for. Errors: kPermissionDenied as Permissions::Check; kInvalidArgument for annotations that
/// cannot be read.
Status CheckWishes(const ContainerDemand& demand, const std::map<std::string, double>& requests,
                   const AdmissionOptions& options);

/// The same for one request, by its name and amount, alone.
Status CheckRequest(const ContainerDemand& demand, const std::pair<std::string, double>& request,
                    const AdmissionOptions& options);

/// OK if the pod's namespace may have the plugins' allocations: a role or QoS class can give more
/// than the annotations ask for. Errors: kPermissionDenied as Permissions::Check.
Status CheckGiven(const ContainerDemand& demand, const AllocationByResource& allocations,
                  const AdmissionOptions& options);

}  // namespace qrm::placement
