// The answers of the pod-resources API: pure functions from the node's state to messages.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "api/base/status.h"
#include "api/placement.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "manager/podresources/kubelet_view.h"
#include "topology/machine.h"

namespace v1 {
class AllocatableResourcesResponse;
class GetPodResourcesRequest;
class GetPodResourcesResponse;
class ListPodResourcesResponse;
class PodResources;
}  // namespace v1

namespace qrm::manager {

/// The plugins' reports about a pod's containers, by container name.
using PodPlacements = std::map<std::string, PlacedByResource>;

/// All admitted pods, then pods that only kubelet knows. In each, sidecars come first, then app
/// containers, each in the order of the pod's spec; like kubelet, it leaves out init and ephemeral
/// containers. Cost: linear in the records.
::v1::ListPodResourcesResponse ListAnswer(const checkpoint::NodeState& state,
                                          const Machine& machine, const KubeletView& kubelet);

/// Fills the empty `message` with ListAnswer's data of one pod. The plugins' reports take
/// precedence over the records; null if the plugins were not asked.
void FillPod(const checkpoint::PodRecord& pod, const Machine& machine, const KubeletView& kubelet,
             const PodPlacements* placements, ::v1::PodResources& message);

/// Removes the annotations that are not in `told` from `pod`: tenants write them, and every reader
/// of the answer would see them.
void KeepAnnotations(const std::set<std::string>& told, ::v1::PodResources& pod);

/// The pods of `kubelet` that `state` does not know, one at a time.
void ForEachKubeletsOwnPod(const checkpoint::NodeState& state, const KubeletView& kubelet,
                           const std::function<void(::v1::PodResources& pod)>& take);

/// The same as ListAnswer in the first version of the API, which has devices only, serialized.
std::string ListBytesV1Alpha1(const checkpoint::NodeState& state, const KubeletView& kubelet);

/// One pod. Errors: kUnknown for an unknown pod, with kubelet's text, on which clients match.
StatusOr<::v1::GetPodResourcesResponse> GetAnswer(const checkpoint::NodeState& state,
                                                  const Machine& machine,
                                                  const KubeletView& kubelet,
                                                  const ::v1::GetPodResourcesRequest& request,
                                                  const PodPlacements* placements = nullptr);

/// Capacity less reservations, in use or not. CPU ids are those that a plugin reported, or all of
/// the machine if its amount shows that none is reserved, without those that are offline now;
/// devices are kubelet's.
::v1::AllocatableResourcesResponse AllocatableAnswer(const AllocatableByResource& allocatable,
                                                     const Machine& machine,
                                                     const KubeletView& kubelet);

}  // namespace qrm::manager
