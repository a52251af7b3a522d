// Picks what outlives an admission.
#include "manager/admission/kept_draft.h"

namespace qrm::manager {

std::map<std::string, double> ServedRequests(const Draft& draft) {
  std::map<std::string, double> requests = draft.explanation.requests;
  for (const std::string& name : draft.fixed) {
    const auto former = draft.known->requests.find(name);
    if (former == draft.known->requests.end()) {
      requests.erase(name);
    } else {
      requests[name] = former->second;
    }
  }
  return requests;
}

ContainerDemand SubjectOf(const ContainerDemand& demand) {
  return {.pod = {.uid = demand.pod.uid,
                  .pod_namespace = demand.pod.pod_namespace,
                  .name = demand.pod.name,
                  .role = demand.pod.role,
                  .type = demand.pod.type,
                  .qos_class = demand.pod.qos_class},
          .container = demand.container,
          .type = demand.type,
          .requests = demand.requests,
          .source = demand.source};
}

}  // namespace qrm::manager
