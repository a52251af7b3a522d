// Implements the nic plugin's decisions.
#include "plugins/nic/policy.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "plugins/rules/select.h"

namespace qrm::nic {
namespace {

/// How near a container's NIC must be, and the configuration that says so, for people.
struct Nearness {
  NicAffinity affinity;
  std::string by;
};

Nearness NearnessOf(const NicPluginConfig& config, const ContainerRequest& request) {
  const rules::RoleRule* const rule = rules::FirstFitting(config.rules, request);
  const auto role = config.roles.find(rule == nullptr ? request.pod_role.str() : rule->role);
  if (role == config.roles.end()) {
    return {config.affinity, "numa"};
  }
  return {role->second, rule == nullptr ? fmt::format("roles.{}", role->first) : rule->place};
}

StatusOr<double> BandwidthOf(const View& view, const ContainerRequest& request) {
  if (!view.config.request_is_bandwidth) {
    return 0.0;
  }
  const double mbps = request.quantity();
  if (!(mbps >= 0 && std::isfinite(mbps))) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot place {}: {} is not a bandwidth; request 0 Mbit/s or more",
                  rules::NameOf(request), mbps);
  }
  return mbps;
}

/// The free bandwidth of a NIC in its tighter direction; infinite when it is not accounted for.
double FreeMbps(const NicInfo& nic, const Load& load) {
  double free = HUGE_VAL;
  for (const uint64_t capacity : {nic.egress_mbps, nic.ingress_mbps}) {
    if (capacity > 0) {
      free = std::min(free, static_cast<double>(capacity) - load.mbps);
    }
  }
  return free;
}

/// A NIC with room for the request, and how it compares with other NICs.
struct Candidate {
  const NicInfo* nic = nullptr;
  bool of_same_pod = false;  ///< containers of a pod share its network
  double used_share = 0;     ///< of its bandwidth, if that is accounted for
  uint64_t containers = 0;
};

bool IsBetter(const Candidate& a, const Candidate& b) {
  const auto rank = [](const Candidate& candidate) {
    return std::tuple(!candidate.of_same_pod, !candidate.nic->node.has_value(),
                      candidate.used_share, candidate.containers, candidate.nic->id.interface,
                      candidate.nic->id.netns);
  };
  return rank(a) < rank(b);
}

/// The NICs with room for `mbps`, the best first.
std::vector<Candidate> FindCandidates(const View& view, const ContainerRequest& request,
                                      double mbps) {
  std::vector<Candidate> candidates;
  for (const NicInfo& nic : view.nics) {
    const Load load = view.state.LoadOf(nic.id);
    const double free = FreeMbps(nic, load);
    const Load with =
        view.state.LoadWith(request.key, {.nic = nic.id, .mbps = mbps, .type = request.type});
    if (!nic.problem.empty() || FreeMbps(nic, with) < 0) {
      continue;
    }
    candidates.push_back({.nic = &nic,
                          .of_same_pod = view.state.IsUsedByPod(request.key.pod_uid, nic.id),
                          .used_share = load.mbps > 0 ? load.mbps / (load.mbps + free) : 0,
                          .containers = load.containers});
  }
  std::ranges::sort(candidates, IsBetter);
  if (!candidates.empty() && candidates.front().of_same_pod) {
    candidates.resize(1);
  }
  return candidates;
}

bool IsWithin(const NicInfo& nic, const NumaMask& nodes) {
  return nodes.Empty() || !nic.node || nodes.Has(*nic.node);
}

std::string Describe(const View& view) {
  std::vector<std::string> parts;
  for (const NicInfo& nic : view.nics) {
    const double free = FreeMbps(nic, view.state.LoadOf(nic.id));
    std::string state = nic.problem;
    if (state.empty() && !std::isinf(free)) {
      state = fmt::format("{} Mbit/s free", free);
    }
    parts.push_back(fmt::format("{} on {}{}{}", nic.id.interface,
                                nic.node ? fmt::format("node {}", *nic.node) : "no node",
                                state.empty() ? "" : ": ", state));
  }
  return parts.empty() ? "the node has none" : fmt::format("{}", fmt::join(parts, ", "));
}

bool IsAnyUnhealthy(const View& view) {
  return std::ranges::any_of(view.nics, [](const NicInfo& nic) { return !nic.problem.empty(); });
}

Status NoNic(const View& view, const ContainerRequest& request, double mbps,
             const NumaMask& within) {
  return Errorf(StatusCode::kResourceExhausted,
                "cannot place {0}: no NIC{1} has {2} Mbit/s free; {4} ({3})",
                rules::NameOf(request),
                within.Empty() ? "" : fmt::format(" of NUMA nodes {}", ToString(within)), mbps,
                Describe(view),
                IsAnyUnhealthy(view) ? "repair the NIC, request less or delete a pod"
                                     : "request less or delete a pod");
}

ResourceAllocation Give(const View& view, const NicInfo& nic, double mbps, bool preferred) {
  ResourceAllocation allocation = {.value = nic.id.interface,
                                   .is_scalar_resource = view.config.request_is_bandwidth,
                                   .quantity = mbps};
  if (!nic.ipv4.empty()) {
    allocation.envs[view.config.names.ipv4_env] = nic.ipv4;
  }
  if (!nic.ipv6.empty()) {
    allocation.envs[view.config.names.ipv6_env] = nic.ipv6;
  }
  if (!nic.id.netns.empty()) {
    allocation.annotations[view.config.names.netns_annotation] = nic.id.netns;
  }
  if (nic.node) {
    allocation.hints = {{.nodes = NumaMask{*nic.node}, .preferred = preferred}};
  }
  if (nic.node && mbps > 0) {
    allocation.amount_by_node[static_cast<uint64_t>(*nic.node)] =
        static_cast<uint64_t>(std::ceil(mbps));
  }
  return allocation;
}

}  // namespace

StatusOr<HintList> NicHints(const View& view, const ContainerRequest& request) {
  QRM_ASSIGN_OR_RETURN(const double mbps, BandwidthOf(view, request));
  const std::vector<Candidate> candidates = FindCandidates(view, request, mbps);
  NumaMask nodes;
  bool may_be_far = NearnessOf(view.config, request).affinity == NicAffinity::kPreferred;
  for (const Candidate& candidate : candidates) {
    may_be_far = may_be_far || !candidate.nic->node;
    if (const std::optional<int>& node = candidate.nic->node; node.has_value()) {
      nodes.Add(*node);
    }
  }
  if (candidates.empty()) {
    // An impossible hint cannot give a reason.
    return IsAnyUnhealthy(view) ? StatusOr<HintList>(NoNic(view, request, mbps, {}))
                                : HintList::Impossible();
  }
  if (nodes.Empty()) {
    return HintList::NoPreference();
  }
  std::vector<TopologyHint> hints;
  for (const int node : nodes) {
    hints.push_back({.nodes = NumaMask{node}, .preferred = true});
  }
  const NumaMask& all = view.machine.node_mask();
  if (may_be_far && all.Count() > 1) {
    hints.push_back({.nodes = all, .preferred = false});
  }
  return HintList(std::move(hints));
}

StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint) {
  QRM_ASSIGN_OR_RETURN(const double mbps, BandwidthOf(view, request));
  const std::vector<Candidate> candidates = FindCandidates(view, request, mbps);
  auto chosen = std::ranges::find_if(
      candidates, [&](const Candidate& candidate) { return IsWithin(*candidate.nic, hint.nodes); });
  const bool near = chosen != candidates.end();
  Nearness wish = NearnessOf(view.config, request);
  if (!near && wish.affinity == NicAffinity::kPreferred) {
    chosen = candidates.begin();
  }
  if (chosen == candidates.end()) {
    return NoNic(view, request, mbps, hint.nodes);
  }
  Decision decision{.allocation = Give(view, *chosen->nic, mbps, near && hint.preferred),
                    .use = {.nic = chosen->nic->id, .mbps = mbps, .type = request.type}};
  decision.allocation.decided_by = std::move(wish.by);
  return decision;
}

ResourceAllocation Retold(const ResourceAllocation& granted, const NicInfo& nic,
                          const NicNames& names) {
  ResourceAllocation told = granted;
  for (const auto& [variable, address] :
       {std::pair(names.ipv4_env, nic.ipv4), std::pair(names.ipv6_env, nic.ipv6)}) {
    const auto known = told.envs.find(variable);
    const bool is_lost = known != told.envs.end() &&
                         std::ranges::find(nic.addresses, known->second) == nic.addresses.end();
    if (is_lost && !address.empty()) {
      known->second = address;
    }
  }
  if (!nic.problem.empty()) {
    told.annotations[names.problem_annotation] = nic.problem;
  } else if (const auto past = told.annotations.find(names.problem_annotation);
             past != told.annotations.end()) {
    // Not erased: the manager keeps annotations that an answer leaves out.
    past->second.clear();
  }
  return told;
}

}  // namespace qrm::nic
