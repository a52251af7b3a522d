// Decides which containers may share a NUMA node, and compares requests with whole nodes.
#include "plugins/rules/sharing.h"

#include <algorithm>
#include <utility>

#include "api/base/errorf.h"
#include "plugins/rules/select.h"

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
    const bool welcome = std::ranges::all_of(
        standing, [&](const Tenant* tenant) { return MayShare(*tenant, candidate); });
    if (!welcome) {
      barred.Add(node);
    }
  }
  return barred;
}

std::vector<TopologyHint> KeptOrAll(std::vector<TopologyHint> fitting, const NumaMask& nodes) {
  const bool kept = !nodes.Empty() && std::ranges::any_of(fitting, [&](const TopologyHint& hint) {
    return hint.nodes == nodes;
  });
  if (kept) {
    return {{.nodes = nodes, .preferred = true}};
  }
  return fitting;
}

std::string NameOfEnemy(const Tenants& standing, const Tenant& candidate) {
  const auto enemy = std::ranges::find_if(
      standing, [&](const Tenant* tenant) { return !MayShare(*tenant, candidate); });
  return NameOf(**enemy);
}

std::string NameOf(const Tenant& tenant) {
  return tenant.role.empty() ? "a container without role" : tenant.role;
}

Status CheckFill(const ContainerRequest& request, const Tenant& tenant, const NumaMask& nodes,
                 const Fill& fill) {
  const bool by_annotation = tenant.role.empty() && !tenant.share.anyone;
  if (!by_annotation || fill.asked * 100 >= fill.total * static_cast<double>(fill.least_percent)) {
    return OkStatus();
  }
  return Errorf(StatusCode::kPermissionDenied,
                "cannot place {0}: numa_exclusive of annotation memory_enhancement needs {5}% of "
                "NUMA nodes {1} (exclusive-node-percent), but it requests only {4:.0f} of {2:.0f} "
                "{3}; request more, or remove numa_exclusive",
                NameOf(request), ToString(nodes), fill.total, fill.what, fill.asked,
                fill.least_percent);
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

}  // namespace qrm::rules
