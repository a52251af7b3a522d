// Picks what outlives an admission.
#include "manager/admission/kept_draft.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/log.h"

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

std::map<std::string, std::vector<std::string>> GivenTooLate(const std::vector<Draft>& drafts) {
  std::map<std::string, std::vector<std::string>> too_late;
  for (const Draft& draft : drafts) {
    if (!draft.too_late.empty()) {
      too_late[draft.demand.container] = draft.too_late;
      log::Warning("running container was made without what it requests",
                   {{"container", NameOf(draft.demand)},
                    {"resources", fmt::format("{}", fmt::join(draft.too_late, ", "))},
                    {"cure", "delete the pod, so that it is made anew"}});
    }
  }
  return too_late;
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
