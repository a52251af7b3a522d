// Selects what is kept after an admission.
#include "manager/admission/kept_draft.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/log.h"
#include "manager/runtime/run_options.h"
#include "plugins/rules/qos_annotations.h"

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

namespace {

// A driver's CPUs can be applied to a running container. Its variables and annotations stay on
// record for the next instance, and the explanation says that this instance lacks them.
void TellOfDriversVariables(Draft& draft) {
  if (!draft.driver.has_value()) {
    return;
  }
  const std::string& driver = draft.driver->resource;
  const auto given = draft.explanation.allocations.find(driver);
  if (given != draft.explanation.allocations.end() &&
      !WasMadeWith(draft.demand.made_with, given->second)) {
    draft.explanation.too_late.push_back("variables of " + driver);
    log::Warning("running container lacks the variables of its compute driver",
                 {{"container", NameOf(draft.demand)},
                  {"driver", driver},
                  {"cure", "restart the container"}});
  }
}

}  // namespace

void LeaveOutWhatCameTooLate(Draft& draft) {
  for (const ContainerRequest& request : draft.requests) {
    const std::string& plugin = request.resource;
    AllocationByResource& allocations = draft.explanation.allocations;
    const auto own = allocations.find(plugin);
    if (own == allocations.end() || !IsForNewOnly(own->second) ||
        WasMadeWith(draft.demand.made_with, own->second)) {
      continue;
    }
    draft.too_late.push_back(plugin);
    std::erase_if(allocations, [&](const auto& entry) {
      const auto origin = draft.origins.find(entry.first);
      return origin != draft.origins.end() && origin->second.plugin == plugin;
    });
    std::erase_if(draft.origins, [&](const auto& entry) { return entry.second.plugin == plugin; });
    draft.explanation.too_late.push_back(plugin);
  }
  TellOfDriversVariables(draft);
}

std::map<std::string, std::vector<std::string>> GivenTooLate(const std::vector<Draft>& drafts) {
  std::map<std::string, std::vector<std::string>> too_late;
  for (const Draft& draft : drafts) {
    if (!draft.too_late.empty()) {
      too_late[draft.demand.container] = draft.too_late;
      log::Warning("running container lacks resources that only a new container can get",
                   {{"container", NameOf(draft.demand)},
                    {"resources", fmt::format("{}", fmt::join(draft.too_late, ", "))},
                    {"cure", "delete the pod, so that it is recreated"}});
    }
  }
  return too_late;
}

placement::ContainerDemand SubjectOf(const placement::ContainerDemand& demand) {
  placement::ContainerDemand subject = {.pod = {.uid = demand.pod.uid,
                                                .pod_namespace = demand.pod.pod_namespace,
                                                .name = demand.pod.name,
                                                .role = demand.pod.role,
                                                .type = demand.pod.type,
                                                .qos_class = demand.pod.qos_class},
                                        .container = demand.container,
                                        .type = demand.type,
                                        .requests = demand.requests,
                                        .source = demand.source};
  if (!rules::IgnoredQosKeys(demand.pod.annotations).empty()) {
    subject.pod.annotations = demand.pod.annotations;
  }
  return subject;
}

}  // namespace qrm::manager
