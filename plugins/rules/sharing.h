// Which containers may be on the same NUMA node: the anti-affinity between roles.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/hint.h"
#include "api/id_set.h"

namespace qrm::rules {

/// How many NUMA nodes one container may spread over; in the order of the words that name them in
/// configuration files.
enum class NumaSpan {
  kOne,     ///< exactly one
  kFewest,  ///< as few as needed, filled one after another
  kEven,    ///< as few as needed, the same share from each
  kAny,     ///< preferably as few as needed, but anywhere rather than nowhere
};

/// Whom a role tolerates on its NUMA nodes.
struct ShareRule {
  bool anyone = false;
  std::set<std::string> roles;

  bool operator==(const ShareRule&) const = default;
};

/// A container that is bound to NUMA nodes, with what its role tolerates there.
struct Tenant {
  std::string pod_uid;
  std::string role;  ///< empty for containers that are bound without one
  ShareRule share;

  bool operator==(const Tenant&) const = default;
};

/// True when both tolerate each other; containers of one pod always do.
bool MayShare(const Tenant& a, const Tenant& b);

/// Tenants of one NUMA node, who outlive this.
using Tenants = std::vector<const Tenant*>;
using TenantsByNode = std::map<int, Tenants>;

/// The nodes that `newcomer` may not use because of the containers on them.
NumaMask BarredNodes(const TenantsByNode& tenants, const Tenant& newcomer);

/// The one of `fitting` that is on `nodes`, to which a container that runs is confined already,
/// preferred; all of them when none is.
std::vector<TopologyHint> KeptOrAll(std::vector<TopologyHint> fitting, const NumaMask& nodes);

/// The name of the first of `standing` that `newcomer` may not share a node with; there is one.
std::string NameOfEnemy(const Tenants& standing, const Tenant& newcomer);

/// "storage-service" or "a container without role", for messages.
std::string NameOf(const Tenant& tenant);

}  // namespace qrm::rules
