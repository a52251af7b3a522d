// Which containers may be on the same NUMA node: the anti-affinity between roles, and nodes that a
// container gets exclusively by its own annotation.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/id_set.h"
#include "api/resource.h"

namespace qrm::rules {

/// How many NUMA nodes a container may use; in the order of the words in configuration files.
enum class NumaSpan {
  kOne,     ///< exactly one
  kFewest,  ///< as few as needed, filled one after another
  kEven,    ///< as few as needed, the same share from each
  kAny,     ///< as few as needed if possible, else more
};

/// Which roles a role tolerates on its NUMA nodes.
struct ShareRule {
  bool anyone = false;
  std::set<std::string> roles;

  bool operator==(const ShareRule&) const = default;
};

/// A container that is bound to NUMA nodes, with what its role tolerates there.
struct Tenant {
  std::string pod_uid;
  std::string role;  ///< empty for containers that are bound without a role
  ShareRule share;

  bool operator==(const Tenant&) const = default;
};

/// True when both tolerate each other; containers of one pod always do.
bool MayShare(const Tenant& a, const Tenant& b);

/// Tenants of one NUMA node, which outlive this value.
using Tenants = std::vector<const Tenant*>;
using TenantsByNode = std::map<int, Tenants>;

/// The nodes that `candidate` may not use because of the containers on them.
NumaMask BarredNodes(const TenantsByNode& tenants, const Tenant& candidate);

/// The hint of `fitting` for `nodes`, to which a running container is confined, as preferred; all
/// hints if there is none.
std::vector<TopologyHint> KeptOrAll(std::vector<TopologyHint> fitting, const NumaMask& nodes);

/// The name of the first of `standing` that `candidate` may not share a node with; one must exist.
std::string NameOfEnemy(const Tenants& standing, const Tenant& candidate);

/// "storage-service" or "a container without role", for messages.
std::string NameOf(const Tenant& tenant);

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

}  // namespace qrm::rules
