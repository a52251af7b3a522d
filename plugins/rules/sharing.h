// Which containers may be on the same NUMA node: the anti-affinity between roles.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/hint.h"
#include "api/id_set.h"

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

}  // namespace qrm::rules
