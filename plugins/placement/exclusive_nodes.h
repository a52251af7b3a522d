// Which containers may get NUMA nodes exclusively by their own annotation.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/placement/sharing.h"

namespace qrm::placement {

/// The default part of its NUMA nodes that a container must request to get them exclusively by
/// annotation.
inline constexpr uint64_t kUsualExclusiveNodePercent = 50;

/// A request, and the resources of the nodes that it would get exclusively.
struct Fill {
  double asked = 0;
  double total = 0;
  uint64_t least_percent = 0;
  std::string what;  ///< what the amounts count: "CPUs"
};

/// OK for a container that shares its nodes, fills them, or gets them exclusively by its configured
/// role. Errors: kPermissionDenied with the amounts and the remedies.
Status CheckFill(const ContainerRequest& request, const Tenant& tenant, const NumaMask& nodes,
                 const Fill& fill);

/// The hints of `fitting` with nodes that `check` accepts. Errors: the error of `check` for the
/// first, if it accepts none.
StatusOr<std::vector<TopologyHint>> OnlyFilled(
    std::vector<TopologyHint> fitting, const std::function<Status(const NumaMask& nodes)>& check);

}  // namespace qrm::placement
