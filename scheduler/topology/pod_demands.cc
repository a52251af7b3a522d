// Fills in what the scheduler knows of a pod; the rest is its node's.
#include "scheduler/topology/pod_demands.h"

#include <string>

#include "plugins/placement/requests.h"

namespace qrm::scheduler {

placement::PodDemands DemandsOf(const placement::NodeModel& model, const Pod& pod) {
  placement::ContainerDemand common{.pod = {.uid = pod.uid,
                                            .pod_namespace = pod.pod_namespace,
                                            .name = pod.name,
                                            .qos_class = pod.qos_class,
                                            .labels = pod.labels,
                                            .annotations = pod.annotations},
                                    .runtime_class = pod.runtime_class,
                                    .controller_kind = pod.controller_kind,
                                    .priority_class = pod.priority_class};
  common.role_key = placement::ReadRole(model.pod_keys, common.pod);
  return placement::DemandsOf(common, pod.containers,
                              placement::MainContainerOf(model.pod_keys, common.pod));
}

}  // namespace qrm::scheduler
