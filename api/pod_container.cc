// Types and the QoS class follow from the containers of the whole pod.
#include "api/pod_container.h"

#include <algorithm>

namespace qrm {

ContainerType TypeOf(const PodContainer& container, const std::vector<PodContainer>& containers,
                     const std::string& main) {
  using Kind = PodContainer::Kind;
  switch (container.kind) {
    case Kind::kInit:
      return ContainerType::kInit;
    case Kind::kSidecar:
      return ContainerType::kSidecar;
    case Kind::kEphemeral:
      return ContainerType::kEphemeral;
    case Kind::kApp:
      break;
  }
  const bool named = std::any_of(
      containers.begin(), containers.end(),
      [&](const PodContainer& other) { return other.kind == Kind::kApp && other.name == main; });
  const auto first =
      std::find_if(containers.begin(), containers.end(),
                   [](const PodContainer& other) { return other.kind == Kind::kApp; });
  return container.name == (named ? main : first->name) ? ContainerType::kMain
                                                        : ContainerType::kSidecar;
}

std::string QosClassOf(const std::vector<PodContainer>& containers) {
  bool any = false;
  bool all_limited = true;
  std::map<std::string, double> requests;
  std::map<std::string, double> limits;
  for (const PodContainer& container : containers) {
    if (container.kind == PodContainer::Kind::kEphemeral) {
      continue;
    }
    for (const char* resource : {"cpu", "memory"}) {
      const auto request = container.requests.find(resource);
      const auto limit = container.limits.find(resource);
      const bool limited = limit != container.limits.end();
      all_limited = all_limited && limited;
      any = any || limited || request != container.requests.end();
      requests[resource] += request == container.requests.end() ? 0 : request->second;
      limits[resource] += limited ? limit->second : 0;
    }
  }
  if (!any) {
    return "BestEffort";
  }
  return all_limited && requests == limits ? "Guaranteed" : "Burstable";
}

}  // namespace qrm
