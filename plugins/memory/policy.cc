// The memory plugin's decisions.
#include "plugins/memory/policy.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "plugins/placement/qos_annotations.h"
#include "topology/hint_generation.h"

namespace qrm::memory {
namespace {

using placement::NumaSpan;
using placement::QosLevel;
using placement::QosRequest;
using placement::Tenant;

constexpr double kLargestAmount = 9007199254740992.0;  // 2^53: whole bytes in a double up to here

std::string NameOf(const ContainerRequest& request) {
  return fmt::format("container {} of pod {}/{}", request.key.container, request.pod_namespace,
                     request.pod_name);
}

StatusOr<uint64_t> BytesOf(const ContainerRequest& request) {
  const double amount = request.quantity();
  if (!(amount >= 0 && amount <= kLargestAmount)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot place {}: {} is no amount of memory; request bytes from 0 to 2^53",
                  NameOf(request), amount);
  }
  return static_cast<uint64_t>(std::ceil(amount));
}

placement::TenantsByNode TenantsOf(const MemoryState& state) {
  placement::TenantsByNode tenants;
  for (const auto& [key, binding] : state) {
    for (const auto& [node, bytes] : binding.bytes_by_node) {
      tenants[node].push_back(binding.tenant);
    }
  }
  return tenants;
}

/// What the machine has for one container that is to be bound.
struct Room {
  Tenant tenant;
  NumaMask barred;  ///< nodes whose tenants do not tolerate it, or it them
  std::map<int, uint64_t> free;
  NodeAmounts amounts;
};

Room FindRoom(const View& view, const Tenant& tenant) {
  Room room;
  room.tenant = tenant;
  room.barred = BarredNodes(TenantsOf(view.state), tenant);
  for (const auto& [node, book] : BooksOf(view)) {
    room.free[node] = room.barred.Has(node) ? 0 : book.free;
    room.amounts.total[node] = static_cast<double>(book.allocatable);
    room.amounts.free[node] = static_cast<double>(room.free[node]);
  }
  return room;
}

Status NoRoom(const View& view, const ContainerRequest& request, const Room& room,
              const NumaMask& within) {
  const placement::TenantsByNode tenants = TenantsOf(view.state);
  std::vector<std::string> parts;
  for (const auto& [node, free] : room.free) {
    if (!room.barred.Has(node)) {
      parts.push_back(fmt::format("node {}: {} free", node, free));
      continue;
    }
    const auto& standing = tenants.at(node);
    const auto enemy = std::find_if(standing.begin(), standing.end(), [&](const Tenant& tenant) {
      return !MayShare(tenant, room.tenant);
    });
    parts.push_back(fmt::format("node {}: {} stands there", node, placement::NameOf(*enemy)));
  }
  return Errorf(StatusCode::kResourceExhausted,
                "cannot place {}: no allowed NUMA nodes{} have {:.0f} bytes of memory for {} ({}); "
                "remove a pod or ask for less",
                NameOf(request), within.Empty() ? "" : fmt::format(" of {}", ToString(within)),
                request.quantity(), placement::NameOf(room.tenant), fmt::join(parts, ", "));
}

/// The shares of `bytes` on `nodes`: even ones by the rule, else each node filled in turn. Absent
/// when they do not fit.
std::optional<std::map<int, uint64_t>> Split(const Room& room, NumaSpan span, uint64_t bytes,
                                             const NumaMask& nodes) {
  std::map<int, uint64_t> shares;
  uint64_t left = bytes;
  auto nodes_left = static_cast<uint64_t>(nodes.Count());
  for (const int node : nodes) {
    const uint64_t even = (left + nodes_left - 1) / nodes_left;
    const uint64_t wanted = span == NumaSpan::kEven ? even : left;
    const uint64_t share = std::min(wanted, room.free.at(node));
    if (span == NumaSpan::kEven && share < even) {
      return std::nullopt;
    }
    shares[node] = share;
    left -= share;
    --nodes_left;
  }
  return left == 0 ? std::optional(std::move(shares)) : std::nullopt;
}

/// The masks that could hold `bytes`, the best first; none when nothing fits.
std::vector<TopologyHint> FittingMasks(const View& view, const Room& room, NumaSpan span,
                                       uint64_t bytes) {
  const HintGenerationOptions options = {.max_nodes = span == NumaSpan::kOne ? 1 : 0};
  // Nothing needs no node, but the container is bound all the same.
  const double amount = std::max(static_cast<double>(bytes), 1.0);
  const HintList generated = GenerateHints(view.machine, amount, room.amounts, options);
  std::vector<TopologyHint> fitting;
  for (const TopologyHint& hint : generated.hints()) {
    if (!hint.nodes.Intersects(room.barred) && Split(room, span, bytes, hint.nodes)) {
      fitting.push_back(hint);
    }
  }
  return fitting;
}

/// The nodes to bind to: `hint` when it fits, else the best mask within it.
std::optional<TopologyHint> ChooseNodes(const std::vector<TopologyHint>& fitting,
                                        const TopologyHint& hint) {
  for (const TopologyHint& candidate : fitting) {
    if (hint.nodes.Empty() || candidate.nodes == hint.nodes) {
      return candidate;
    }
  }
  for (const TopologyHint& candidate : fitting) {
    if (candidate.nodes.IsSubsetOf(hint.nodes)) {
      return TopologyHint{.nodes = candidate.nodes, .preferred = hint.preferred};
    }
  }
  return std::nullopt;
}

ResourceAllocation Bind(const TopologyHint& hint, uint64_t bytes,
                        const std::map<int, uint64_t>& shares) {
  ResourceAllocation allocation = sdk::PinMemory(hint.nodes, bytes);
  allocation.hints = {hint};
  for (const auto& [node, share] : shares) {
    allocation.amount_by_node[static_cast<uint64_t>(node)] = share;
  }
  return allocation;
}

ResourceAllocation Record(uint64_t bytes) {
  return {.is_scalar_resource = true, .quantity = static_cast<double>(bytes)};
}

std::optional<BindingRule> RuleOfQos(const QosRequest& qos) {
  if (qos.level != QosLevel::kDedicated || !qos.numa_binding) {
    return std::nullopt;
  }
  return BindingRule{.numa = qos.distribute_evenly_across_numa ? NumaSpan::kEven
                             : qos.numa_exclusive              ? NumaSpan::kFewest
                                                               : NumaSpan::kOne,
                     .share = {.anyone = !qos.numa_exclusive}};
}

}  // namespace

StatusOr<std::optional<BindingRule>> RuleFor(const MemoryPluginConfig& config,
                                             const ContainerRequest& request) {
  if (request.type != ContainerType::kMain) {
    return std::optional<BindingRule>();
  }
  if (const auto role = config.roles.find(request.pod_role); role != config.roles.end()) {
    return std::optional(role->second);
  }
  QRM_ASSIGN_OR_RETURN(const QosRequest qos, placement::ParseQosAnnotations(request.annotations));
  std::optional<BindingRule> rule = RuleOfQos(qos);
  if (!rule && config.bind_guaranteed && request.native_qos_class == "Guaranteed") {
    rule = BindingRule{.numa = NumaSpan::kFewest, .share = {.anyone = true}};
  }
  return rule;
}

Tenant TenantOf(const MemoryPluginConfig& config, const ContainerRequest& request) {
  Tenant tenant = {.pod_uid = request.key.pod_uid, .share = {.anyone = true}};
  if (config.roles.contains(request.pod_role)) {
    tenant.role = request.pod_role;
  }
  const StatusOr<std::optional<BindingRule>> rule = RuleFor(config, request);
  if (rule.ok() && *rule) {
    tenant.share = (*rule)->share;
  }
  return tenant;
}

StatusOr<HintList> MemoryHints(const View& view, const ContainerRequest& request) {
  QRM_ASSIGN_OR_RETURN(const std::optional<BindingRule> rule, RuleFor(view.config, request));
  if (!rule) {
    return HintList::NoPreference();
  }
  if (const auto bound = view.state.find(request.key); bound != view.state.end()) {
    NumaMask nodes;
    for (const auto& [node, bytes] : bound->second.bytes_by_node) {
      nodes.Add(node);
    }
    return HintList({{.nodes = nodes, .preferred = true}});
  }
  QRM_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(request));
  const Room room = FindRoom(view, TenantOf(view.config, request));
  std::vector<TopologyHint> fitting = FittingMasks(view, room, rule->numa, bytes);
  if (fitting.empty()) {
    return NoRoom(view, request, room, {});
  }
  return HintList(std::move(fitting));
}

StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint) {
  QRM_ASSIGN_OR_RETURN(const std::optional<BindingRule> rule, RuleFor(view.config, request));
  QRM_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(request));
  if (!rule) {
    return Decision{.allocation = Record(bytes)};
  }
  const Tenant tenant = TenantOf(view.config, request);
  const Room room = FindRoom(view, tenant);
  const std::optional<TopologyHint> nodes =
      ChooseNodes(FittingMasks(view, room, rule->numa, bytes), hint);
  if (!nodes) {
    return NoRoom(view, request, room, hint.nodes);
  }
  const std::map<int, uint64_t> shares = *Split(room, rule->numa, bytes, nodes->nodes);
  return Decision{.allocation = Bind(*nodes, bytes, shares),
                  .binding = Binding{.bytes_by_node = shares, .tenant = tenant}};
}

}  // namespace qrm::memory
