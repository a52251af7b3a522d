// What the pod-resources API answers: pure functions from the node's state to messages.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

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

namespace v1alpha1 {
class ListPodResourcesResponse;
}  // namespace v1alpha1

namespace qrm::manager {

/// What plugins told of a pod's containers by place, by container name.
using PodPlacements = std::map<std::string, PlacedByResource>;

/// All admitted pods, then those that only kubelet knows. In each, sidecars come first, then app
/// containers, each in the order of the pod's spec; init and ephemeral containers are left out, as
/// kubelet does. Cost: linear in the records.
::v1::ListPodResourcesResponse ListAnswer(const checkpoint::NodeState& state,
                                          const Machine& machine, const KubeletView& kubelet);

/// Fills `message`, which is empty, with what ListAnswer says about one pod. What plugins told goes
/// before what the records say; null where they were not asked.
void FillPod(const checkpoint::PodRecord& pod, const Machine& machine, const KubeletView& kubelet,
             const PodPlacements* placements, ::v1::PodResources& message);

/// Takes the annotations out of `pod` that `told` does not name: they are its tenant's, whoever
/// reads the answer.
void KeepAnnotations(const std::set<std::string>& told, ::v1::PodResources& pod);

/// The pods of `kubelet` that `state` does not know.
std::vector<const ::v1::PodResources*> KubeletsOwnPods(const checkpoint::NodeState& state,
                                                       const KubeletView& kubelet);

/// The same as ListAnswer in the first version of the API, which knows devices only.
::v1alpha1::ListPodResourcesResponse ListAnswerV1Alpha1(const checkpoint::NodeState& state,
                                                        const KubeletView& kubelet);

/// One pod. Errors: kUnknown with kubelet's text, on which clients match, for a pod that is not
/// there.
StatusOr<::v1::GetPodResourcesResponse> GetAnswer(const checkpoint::NodeState& state,
                                                  const Machine& machine,
                                                  const KubeletView& kubelet,
                                                  const ::v1::GetPodResourcesRequest& request,
                                                  const PodPlacements* placements = nullptr);

/// Capacity less reservations, whatever is in use. CPU ids are those that a plugin named, or all of
/// the machine's when its amount says that none is reserved; devices are kubelet's.
::v1::AllocatableResourcesResponse AllocatableAnswer(const AllocatableByResource& allocatable,
                                                     const Machine& machine,
                                                     const KubeletView& kubelet);

}  // namespace qrm::manager
