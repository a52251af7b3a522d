// Who may keep others off NUMA nodes because its own annotation says so.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/rules/sharing.h"

namespace qrm::rules {

/// How much of its NUMA nodes a container must request to have them exclusively by annotation,
/// unless the configuration says otherwise.
inline constexpr uint64_t kUsualExclusiveNodePercent = 50;

/// A request beside what the nodes have that it would keep others off.
struct Fill {
  double asked = 0;
  double total = 0;
  uint64_t least_percent = 0;
  std::string what;  ///< the amounts are of: "CPUs"
};

/// OK for a container that shares its nodes, has them by its role, which the configuration names,
/// or fills them. Errors: kPermissionDenied with the amounts and the cures.
Status CheckFill(const ContainerRequest& request, const Tenant& tenant, const NumaMask& nodes,
                 const Fill& fill);

/// Those of `fitting` whose nodes `check` accepts. Errors: its error for the first of them, when it
/// accepts none.
StatusOr<std::vector<TopologyHint>> OnlyFilled(
    std::vector<TopologyHint> fitting, const std::function<Status(const NumaMask& nodes)>& check);

}  // namespace qrm::rules
