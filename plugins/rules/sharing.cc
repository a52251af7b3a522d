// Decides which containers may share a NUMA node.
#include "plugins/rules/sharing.h"

#include <algorithm>

namespace qrm::rules {
namespace {

bool Tolerates(const ShareRule& rule, const std::string& role) {
  return rule.anyone || (!role.empty() && rule.roles.contains(role));
}

}  // namespace

bool MayShare(const Tenant& a, const Tenant& b) {
  return a.pod_uid == b.pod_uid || (Tolerates(a.share, b.role) && Tolerates(b.share, a.role));
}

NumaMask BarredNodes(const TenantsByNode& tenants, const Tenant& candidate) {
  NumaMask barred;
  for (const auto& [node, standing] : tenants) {
    const bool welcome = std::all_of(standing.begin(), standing.end(), [&](const Tenant* tenant) {
      return MayShare(*tenant, candidate);
    });
    if (!welcome) {
      barred.Add(node);
    }
  }
  return barred;
}

std::vector<TopologyHint> KeptOrAll(std::vector<TopologyHint> fitting, const NumaMask& nodes) {
  const bool kept =
      !nodes.Empty() && std::any_of(fitting.begin(), fitting.end(),
                                    [&](const TopologyHint& hint) { return hint.nodes == nodes; });
  if (kept) {
    return {{.nodes = nodes, .preferred = true}};
  }
  return fitting;
}

std::string NameOfEnemy(const Tenants& standing, const Tenant& candidate) {
  const auto enemy = std::find_if(standing.begin(), standing.end(), [&](const Tenant* tenant) {
    return !MayShare(*tenant, candidate);
  });
  return NameOf(**enemy);
}

std::string NameOf(const Tenant& tenant) {
  return tenant.role.empty() ? "a container without role" : tenant.role;
}

}  // namespace qrm::rules
