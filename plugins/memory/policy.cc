// Implements the memory plugin's decisions.
#include "plugins/memory/policy.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "plugins/placement/exclusive_nodes.h"
#include "plugins/placement/qos_annotations.h"
#include "topology/hint_generation.h"
#include "topology/static_memory_policy.h"

namespace qrm::memory {
namespace {

using placement::NumaSpan;
using placement::QosLevel;
using placement::QosRequest;
using placement::Tenant;

std::string NameOf(const ContainerRequest& request) {
  return fmt::format("container {} of pod {}/{}", request.key.container, request.pod_namespace,
                     request.pod_name);
}

uint64_t OrdinaryBytes(const MemoryBytes& bytes) {
  const auto found = bytes.find(kOrdinaryMemory);
  return found == bytes.end() ? 0 : found->second;
}

placement::TenantsByNode TenantsOf(const Bindings& bindings) {
  placement::TenantsByNode tenants;
  for (const auto& [key, binding] : bindings) {
    if (binding.blocks.empty()) {
      for (const auto& [node, bytes] : binding.bytes_by_node) {
        tenants[node].push_back(binding.tenant);
      }
      continue;
    }
    for (const int node : NodesOf(binding)) {
      tenants[node].push_back(binding.tenant);
    }
  }
  return tenants;
}

/// What the machine has for one container that is to be bound.
struct Room {
  Tenant tenant;
  NumaMask barred;  ///< nodes whose tenants do not tolerate it, or it them
  MemoryTable table;
  std::map<int, uint64_t> free;
  NodeAmounts amounts;
};

Room FindRoom(const View& view, const Tenant& tenant) {
  Room room;
  room.tenant = tenant;
  room.barred = BarredNodes(TenantsOf(view.bindings), tenant);
  room.table = TableOf(view);
  for (const auto& [id, node] : room.table) {
    const MemoryAmounts& amounts = node.types.at(kOrdinaryMemory);
    room.free[id] = room.barred.Has(id) ? 0 : amounts.free;
    room.amounts.total[id] = static_cast<double>(amounts.allocatable);
    room.amounts.free[id] = static_cast<double>(room.free[id]);
  }
  return room;
}

/// "4096" or, where hugepages are asked for too, "4096 of memory and 0 of hugepages-1Gi".
std::string FreeText(const NodeMemory& node, const MemoryBytes& asked) {
  std::vector<std::string> parts;
  for (const auto& [type, bytes] : asked) {
    const auto amounts = node.types.find(type);
    parts.push_back(
        fmt::format("{} of {}", amounts == node.types.end() ? 0 : amounts->second.free, type));
  }
  const bool ordinary_only = asked.empty() || asked.rbegin()->first == asked.begin()->first;
  return ordinary_only ? fmt::to_string(node.types.at(kOrdinaryMemory).free)
                       : fmt::format("{}", fmt::join(parts, " and "));
}

std::string AskedText(const MemoryBytes& asked) {
  std::vector<std::string> parts;
  for (const auto& [type, bytes] : asked) {
    parts.push_back(fmt::format("{} bytes of {}", bytes, type));
  }
  return parts.empty() ? "0 bytes of memory" : fmt::format("{}", fmt::join(parts, " and "));
}

Status NoRoom(const View& view, const ContainerRequest& request, const Room& room,
              const NumaMask& within) {
  const MemoryBytes asked = BytesOf(request).value_or(MemoryBytes());
  const placement::TenantsByNode tenants = TenantsOf(view.bindings);
  std::vector<std::string> parts;
  for (const auto& [id, node] : room.table) {
    if (!room.barred.Has(id)) {
      parts.push_back(fmt::format("node {}: {} free", id, FreeText(node, asked)));
      continue;
    }
    parts.push_back(fmt::format("node {}: {} stands there", id,
                                placement::NameOfEnemy(tenants.at(id), room.tenant)));
  }
  return Errorf(StatusCode::kResourceExhausted,
                "cannot place {}: no allowed NUMA nodes{} have {} for {} ({}); "
                "remove a pod or ask for less",
                NameOf(request), within.Empty() ? "" : fmt::format(" of {}", ToString(within)),
                AskedText(asked), placement::NameOf(room.tenant), fmt::join(parts, ", "));
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
  // Hugepages alone need no ordinary memory, but the container is bound with them.
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

/// OK when the request fills the nodes that the pod itself wants others kept off.
Status CheckFilled(const View& view, const ContainerRequest& request, const Room& room,
                   const NumaMask& nodes) {
  placement::Fill fill{.asked = request.quantity(),
                       .least_percent = view.config.exclusive_node_percent,
                       .what = "bytes of memory"};
  for (const int node : nodes) {
    fill.total += room.amounts.total.at(node);
  }
  return placement::CheckFill(request, room.tenant, nodes, fill);
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

/// What the static policy is asked for the container.
StaticMemoryRequest StaticRequest(const View& view, const ContainerRequest& request,
                                  MemoryBytes bytes) {
  StaticMemoryRequest asked{.bytes = std::move(bytes)};
  for (const ContainerKey& init : EndedInits(view.bindings, request)) {
    const std::vector<MemoryBlock>& blocks = view.bindings.at(init).blocks;
    asked.leftover.insert(asked.leftover.end(), blocks.begin(), blocks.end());
  }
  return asked;
}

/// The nodes of which the container may have something.
MemoryTable OpenNodes(const Room& room) {
  MemoryTable table = room.table;
  for (const int node : room.barred) {
    table.erase(node);
  }
  return table;
}

bool HoldsExactly(const Binding& binding, const MemoryBytes& bytes) {
  return binding.blocks.size() == bytes.size() &&
         std::all_of(binding.blocks.begin(), binding.blocks.end(), [&](const MemoryBlock& block) {
           const auto asked = bytes.find(block.type);
           return asked != bytes.end() && asked->second == block.bytes;
         });
}

StatusOr<HintList> StaticHints(const View& view, const ContainerRequest& request,
                               const MemoryBytes& bytes) {
  if (const auto bound = view.bindings.find(request.key); bound != view.bindings.end()) {
    if (!HoldsExactly(bound->second, bytes)) {
      return HintList::NoPreference();
    }
    return HintList({{.nodes = NodesOf(bound->second), .preferred = true}});
  }
  const Room room = FindRoom(view, TenantOf(view.config, request));
  std::vector<TopologyHint> hints =
      StaticMemoryPolicy(view.machine).Hints(OpenNodes(room), StaticRequest(view, request, bytes));
  if (hints.empty()) {
    return NoRoom(view, request, room, {});
  }
  return HintList(placement::KeptOrAll(std::move(hints), request.runs_near));
}

/// Shrinks what the ended init containers hold by what `blocks` use again.
std::map<ContainerKey, std::vector<MemoryBlock>> ShrinkInits(const View& view,
                                                             const ContainerRequest& request,
                                                             std::vector<MemoryBlock> blocks) {
  std::map<ContainerKey, std::vector<MemoryBlock>> inits;
  for (const ContainerKey& init : EndedInits(view.bindings, request)) {
    std::vector<MemoryBlock> left = view.bindings.at(init).blocks;
    for (MemoryBlock& block : blocks) {
      block.bytes -= UseAgain(block, left);
    }
    inits.emplace(init, std::move(left));
  }
  return inits;
}

/// How much ordinary memory each node gives to the new blocks, once the init containers hold less.
std::map<int, uint64_t> PartsOf(const View& view, const std::vector<MemoryBlock>& added,
                                const std::map<ContainerKey, std::vector<MemoryBlock>>& inits,
                                MemoryTable table) {
  if (!inits.empty()) {
    Bindings others = view.bindings;
    for (const auto& [init, blocks] : inits) {
      others.at(init).blocks = blocks;
    }
    table = TableOf({view.machine, view.config, others});
  }
  std::map<int, uint64_t> parts;
  for (const MemoryBlock& block : added) {
    const std::map<int, uint64_t> given = Hold(block, table);
    if (block.type == kOrdinaryMemory) {
      parts = given;
    }
  }
  return parts;
}

StatusOr<Decision> PlaceByStaticPolicy(const View& view, const ContainerRequest& request,
                                       const TopologyHint& hint, const MemoryBytes& bytes) {
  const Tenant tenant = TenantOf(view.config, request);
  const Room room = FindRoom(view, tenant);
  const StatusOr<NumaMask> nodes =
      StaticMemoryPolicy(view.machine)
          .Choose(OpenNodes(room), StaticRequest(view, request, bytes), hint);
  if (!nodes.ok()) {
    return Annotate(nodes.status(), fmt::format("cannot place {}", NameOf(request)));
  }
  Binding binding{.tenant = tenant, .type = request.type, .index = request.index};
  for (const auto& [type, amount] : bytes) {
    binding.blocks.push_back({.nodes = *nodes, .type = type, .bytes = amount});
  }
  auto inits = ShrinkInits(view, request, binding.blocks);
  binding.bytes_by_node = PartsOf(view, binding.blocks, inits, room.table);
  const bool preferred = hint.preferred && *nodes == hint.nodes;
  return Decision{.allocation = Bind({.nodes = *nodes, .preferred = preferred},
                                     OrdinaryBytes(bytes), binding.bytes_by_node),
                  .binding = std::move(binding),
                  .inits = std::move(inits)};
}

}  // namespace

StatusOr<Placement> Classify(const MemoryPluginConfig& config, const ContainerRequest& request) {
  Placement placement;
  if (request.type == ContainerType::kMain) {
    if (const auto role = config.roles.find(request.pod_role); role != config.roles.end()) {
      placement.rule = role->second;
      return placement;
    }
    QRM_ASSIGN_OR_RETURN(const QosRequest qos, placement::ParseQosAnnotations(request.annotations));
    placement.rule = RuleOfQos(qos);
  }
  placement.by_static_policy = !placement.rule && config.by_static_policy &&
                               request.type != ContainerType::kEphemeral &&
                               request.native_qos_class == "Guaranteed";
  return placement;
}

Tenant TenantOf(const MemoryPluginConfig& config, const ContainerRequest& request) {
  Tenant tenant = {.pod_uid = request.key.pod_uid, .share = {.anyone = true}};
  if (config.roles.contains(request.pod_role)) {
    tenant.role = request.pod_role;
  }
  const StatusOr<Placement> placement = Classify(config, request);
  const std::optional<BindingRule> rule = placement.ok() ? placement->rule : std::nullopt;
  if (rule.has_value()) {
    tenant.share = rule->share;
  }
  return tenant;
}

StatusOr<HintList> MemoryHints(const View& view, const ContainerRequest& request) {
  QRM_ASSIGN_OR_RETURN(const Placement placement, Classify(view.config, request));
  QRM_ASSIGN_OR_RETURN(const MemoryBytes bytes, BytesOf(request));
  if (placement.by_static_policy && !bytes.empty()) {
    return StaticHints(view, request, bytes);
  }
  if (!placement.rule || bytes.empty()) {
    return HintList::NoPreference();
  }
  if (const auto bound = view.bindings.find(request.key); bound != view.bindings.end()) {
    return HintList({{.nodes = NodesOf(bound->second), .preferred = true}});
  }
  const Room room = FindRoom(view, TenantOf(view.config, request));
  QRM_ASSIGN_OR_RETURN(
      std::vector<TopologyHint> fitting,
      placement::OnlyFilled(
          FittingMasks(view, room, placement.rule->numa, OrdinaryBytes(bytes)),
          [&](const NumaMask& nodes) { return CheckFilled(view, request, room, nodes); }));
  if (fitting.empty()) {
    return NoRoom(view, request, room, {});
  }
  return HintList(placement::KeptOrAll(std::move(fitting), request.runs_near));
}

StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint) {
  QRM_ASSIGN_OR_RETURN(const Placement placement, Classify(view.config, request));
  QRM_ASSIGN_OR_RETURN(const MemoryBytes asked, BytesOf(request));
  if (placement.by_static_policy && !asked.empty()) {
    return PlaceByStaticPolicy(view, request, hint, asked);
  }
  const uint64_t bytes = OrdinaryBytes(asked);
  if (!placement.rule || asked.empty()) {  // nobody bars others from a node for nothing
    return Decision{.allocation = Record(bytes)};
  }
  const Tenant tenant = TenantOf(view.config, request);
  const Room room = FindRoom(view, tenant);
  const std::optional<TopologyHint> nodes =
      ChooseNodes(FittingMasks(view, room, placement.rule->numa, bytes), hint);
  const auto shares = nodes ? Split(room, placement.rule->numa, bytes, nodes->nodes) : std::nullopt;
  if (!shares) {
    return NoRoom(view, request, room, hint.nodes);
  }
  QRM_RETURN_IF_ERROR(CheckFilled(view, request, room, nodes->nodes));
  return Decision{.allocation = Bind(*nodes, bytes, *shares),
                  .binding = Binding{.bytes_by_node = *shares, .tenant = tenant}};
}

}  // namespace qrm::memory
