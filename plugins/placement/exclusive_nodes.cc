// Compares requests with whole nodes.
#include "plugins/placement/exclusive_nodes.h"

#include <utility>

#include "api/base/errorf.h"

namespace qrm::placement {

Status CheckFill(const ContainerRequest& request, const Tenant& tenant, const NumaMask& nodes,
                 const Fill& fill) {
  const bool by_annotation = tenant.role.empty() && !tenant.share.anyone;
  if (!by_annotation || fill.asked * 100 >= fill.total * static_cast<double>(fill.least_percent)) {
    return OkStatus();
  }
  return Errorf(StatusCode::kPermissionDenied,
                "cannot place container {0} of pod {1}/{2}: numa_exclusive of annotation "
                "memory_enhancement needs {7}% of NUMA nodes {3} (exclusive-node-percent), but it "
                "requests only {6:.0f} of {4:.0f} {5}; request more, or remove numa_exclusive",
                request.key.container, request.pod_namespace, request.pod_name, ToString(nodes),
                fill.total, fill.what, fill.asked, fill.least_percent);
}

StatusOr<std::vector<TopologyHint>> OnlyFilled(
    std::vector<TopologyHint> fitting, const std::function<Status(const NumaMask& nodes)>& check) {
  std::vector<TopologyHint> filled;
  Status first;
  for (TopologyHint& hint : fitting) {
    if (const Status checked = check(hint.nodes); checked.ok()) {
      filled.push_back(std::move(hint));
    } else {
      first.Update(checked);
    }
  }
  if (filled.empty() && !first.ok()) {
    return first;
  }
  return filled;
}

}  // namespace qrm::placement
