// Implements the memory plugin's decisions.
#include "plugins/memory/policy.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plugins/memory/books.h"
#include "plugins/memory/room.h"
#include "plugins/rules/qos_annotations.h"
#include "plugins/rules/select.h"
#include "plugins/rules/sharing.h"
#include "topology/static_memory_policy.h"

namespace qrm::memory {
namespace {

using rules::NumaSpan;
using rules::QosLevel;
using rules::QosRequest;
using rules::Tenant;

uint64_t OrdinaryBytes(const MemoryBytes& bytes) {
  const auto found = bytes.find(kOrdinaryMemory);
  return found == bytes.end() ? 0 : found->second;
}

/// The spot to bind to: a spot that `hint` names, if it fits, else the best one within the hint. If
/// the hint names several, the one on `held`. Of memory without CPUs, a hint names either the CPUs
/// near it, as the merge does, or the memory itself, as a compute driver does.
std::optional<Spot> ChooseSpot(const std::vector<Spot>& fitting, const TopologyHint& hint,
                               const NumaMask& held) {
  const auto is_named = [&](const Spot& spot) {
    return hint.nodes.Empty() || spot.hint.nodes == hint.nodes || spot.nodes == hint.nodes;
  };
  const Spot* within = nullptr;
  const Spot* named = nullptr;
  for (const Spot& spot : fitting) {
    if (is_named(spot) && (named == nullptr || spot.nodes == held)) {
      named = &spot;
    }
    if (within == nullptr && spot.hint.nodes.IsSubsetOf(hint.nodes)) {
      within = &spot;
    }
  }
  if (named != nullptr) {
    return *named;
  }
  return within == nullptr
             ? std::nullopt
             : std::optional(
                   Spot{within->nodes, {.nodes = within->hint.nodes, .preferred = hint.preferred}});
}

/// OK when the request fills the nodes that the pod wants to have exclusively.
Status CheckFilled(const View& view, const ContainerRequest& request, const Room& room,
                   const NumaMask& nodes) {
  rules::Fill fill{.asked = request.quantity(),
                   .least_percent = view.config.exclusive_node_percent,
                   .what = "bytes of memory"};
  for (const int node : nodes) {
    fill.total +=
        static_cast<double>(room.books.table().at(node).types.at(kOrdinaryMemory).allocatable);
  }
  return rules::CheckFill(request, room.tenant, nodes, fill);
}

ResourceAllocation Bind(const Spot& spot, uint64_t bytes, const std::map<int, uint64_t>& shares) {
  ResourceAllocation allocation = sdk::PinMemory(spot.nodes, bytes);
  allocation.hints = {spot.hint};
  for (const auto& [node, share] : shares) {
    allocation.amount_by_node[static_cast<uint64_t>(node)] = share;
  }
  return allocation;
}

ResourceAllocation Record(uint64_t bytes) {
  return {.is_scalar_resource = true, .quantity = static_cast<double>(bytes)};
}

std::optional<BindingRule> RuleOfQos(const MemoryPluginConfig& config, const QosRequest& qos) {
  if (config.binds_shared && qos.level == QosLevel::kShared && qos.numa_binding) {
    return BindingRule{.numa = NumaSpan::kOne, .share = {.anyone = true}};
  }
  if (qos.level != QosLevel::kDedicated || !qos.numa_binding) {
    return std::nullopt;
  }
  return BindingRule{.numa = qos.distribute_evenly_across_numa ? NumaSpan::kEven
                             : qos.numa_exclusive              ? NumaSpan::kFewest
                                                               : NumaSpan::kOne,
                     .share = {.anyone = !qos.numa_exclusive}};
}

/// As TenantOf, for a classified container.
Tenant TenantIn(const Placement& placement, const ContainerRequest& request) {
  return {.pod_uid = request.key.pod_uid,
          .role = placement.role,
          .share = placement.rule.has_value() ? placement.rule->share
                                              : rules::ShareRule{.anyone = true}};
}

/// The request to the static policy for the container.
StaticMemoryRequest StaticRequest(const View& view, const ContainerRequest& request,
                                  MemoryBytes bytes) {
  StaticMemoryRequest asked{.bytes = std::move(bytes)};
  for (const ContainerKey& init : EndedInits(view.bindings, request)) {
    const std::vector<MemoryBlock>& blocks = view.bindings.at(init).blocks;
    asked.leftover.insert(asked.leftover.end(), blocks.begin(), blocks.end());
  }
  return asked;
}

/// The nodes whose memory the container may have.
MemoryTable OpenNodes(const Room& room) {
  MemoryTable table = room.books.table();
  for (const int node : room.barred) {
    table.erase(node);
  }
  return table;
}

bool HoldsExactly(const Binding& binding, const MemoryBytes& bytes) {
  return binding.blocks.size() == bytes.size() &&
         std::ranges::all_of(binding.blocks, [&](const MemoryBlock& block) {
           const auto asked = bytes.find(block.type);
           return asked != bytes.end() && asked->second == block.bytes;
         });
}

StatusOr<HintList> StaticHints(const View& view, const ContainerRequest& request,
                               const Placement& placement, const MemoryBytes& bytes) {
  if (const auto bound = view.bindings.find(request.key); bound != view.bindings.end()) {
    if (!HoldsExactly(bound->second, bytes)) {
      return HintList::NoPreference();
    }
    return HintList({{.nodes = NodesOf(bound->second), .preferred = true}});
  }
  const Room room = FindRoom(view, TenantIn(placement, request));
  std::vector<TopologyHint> hints =
      StaticMemoryPolicy(view.machine, &room.books.flows())
          .Hints(OpenNodes(room), StaticRequest(view, request, bytes));
  if (hints.empty()) {
    return NoRoom(view, request, room, {}, {});
  }
  return HintList(rules::KeptOrAll(std::move(hints), request.runs_near));
}

/// Reduces what ended init containers hold by what `blocks` reuse.
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

/// Sets in `binding` how much ordinary memory each node gives, once the init containers of
/// `decision` hold less. Sets in `decision` which containers make way for that.
void TakeParts(const View& view, const ContainerKey& key, Binding& binding, Decision& decision) {
  Bindings others = view.bindings;
  for (const auto& [init, blocks] : decision.inits) {
    others.at(init).blocks = blocks;
  }
  Books books(WithBindings(view, others));
  binding.bytes_by_node = books.Take(key, binding.blocks);
  std::erase_if(binding.bytes_by_node, [](const auto& part) { return part.second == 0; });
  decision.moved = books.Moved(others);
}

StatusOr<Decision> PlaceByStaticPolicy(const View& view, const ContainerRequest& request,
                                       const Tenant& tenant, const TopologyHint& hint,
                                       const MemoryBytes& bytes) {
  const Room room = FindRoom(view, tenant);
  const StatusOr<NumaMask> nodes =
      StaticMemoryPolicy(view.machine, &room.books.flows())
          .Choose(OpenNodes(room), StaticRequest(view, request, bytes), hint);
  if (!nodes.ok()) {
    return Annotate(nodes.status(), fmt::format("cannot place {}", rules::NameOf(request)));
  }
  Binding binding{.tenant = tenant, .type = request.type, .index = request.index};
  for (const auto& [type, amount] : bytes) {
    binding.blocks.push_back({.nodes = *nodes, .type = type, .bytes = amount});
  }
  Decision decision{.inits = ShrinkInits(view, request, binding.blocks)};
  TakeParts(view, request.key, binding, decision);
  const bool preferred = hint.preferred && *nodes == hint.nodes;
  decision.allocation = Bind({*nodes, {.nodes = *nodes, .preferred = preferred}},
                             OrdinaryBytes(bytes), binding.bytes_by_node);
  decision.binding = std::move(binding);
  return decision;
}

/// The nodes for a bound container whose request changed: its own nodes if they have room.
/// Otherwise, if `rule` lets it move, other nodes with room, including its own if possible.
StatusOr<HintList> ResizedHints(const View& view, const ContainerRequest& request,
                                const BindingRule& rule, const Tenant& tenant,
                                const MemoryBytes& bytes) {
  Bindings others = view.bindings;
  const NumaMask own = NodesOf(others.extract(request.key).mapped());
  HintList stays(HintsOf(SpotsOn(view.machine, rule.kinds, {.nodes = own, .preferred = true})));
  const Room room = FindRoom(WithBindings(view, others), tenant);
  const Need need = {rule.numa, rule.kinds, bytes};
  if (!rule.moves || (!own.Intersects(room.barred) && room.books.Fit(BlocksOn(own, need)))) {
    return stays;
  }
  std::vector<Spot> fitting = FittingSpots(view.machine, room, need);
  if (fitting.empty()) {
    return stays;  // rejects it, with the free memory there
  }
  const auto keeps_own = [&](const Spot& spot) { return own.IsSubsetOf(spot.nodes); };
  if (std::ranges::any_of(fitting, keeps_own)) {
    std::erase_if(fitting, std::not_fn(keeps_own));
  }
  return HintList(HintsOf(fitting));
}

}  // namespace

StatusOr<Placement> Classify(const MemoryPluginConfig& config, const ContainerRequest& request) {
  Placement placement;
  const rules::RoleRule* const rule = rules::FirstFitting(config.rules, request);
  const auto role = config.roles.find(rule == nullptr ? request.pod_role.str() : rule->role);
  if (role != config.roles.end()) {
    placement.role = role->first;
  }
  if (request.type == ContainerType::kMain) {
    if (role != config.roles.end()) {
      placement.rule = role->second;
      placement.by = rule == nullptr ? fmt::format("roles.{}", role->first) : rule->place;
      return placement;
    }
    QRM_ASSIGN_OR_RETURN(const QosRequest qos, rules::ParseQosAnnotations(request.annotations));
    placement.rule = RuleOfQos(config, qos);
  }
  placement.by_static_policy = !placement.rule && config.by_static_policy &&
                               request.type != ContainerType::kEphemeral &&
                               request.native_qos_class == "Guaranteed";
  placement.by = placement.rule ? rules::kByBinding : placement.by_static_policy ? "static" : "";
  return placement;
}

Tenant TenantOf(const MemoryPluginConfig& config, const ContainerRequest& request) {
  return TenantIn(Classify(config, request).value_or(Placement()), request);
}

StatusOr<HintList> MemoryHints(const View& view, const ContainerRequest& request) {
  QRM_ASSIGN_OR_RETURN(const Placement placement, Classify(view.config, request));
  QRM_ASSIGN_OR_RETURN(const MemoryBytes bytes, BytesOf(request));
  if (placement.by_static_policy && !bytes.empty()) {
    return StaticHints(view, request, placement, bytes);
  }
  if (!placement.rule || bytes.empty()) {
    return HintList::NoPreference();
  }
  const BindingRule& rule = *placement.rule;
  const Tenant tenant = TenantIn(placement, request);
  if (view.bindings.contains(request.key)) {
    return ResizedHints(view, request, rule, tenant, bytes);
  }
  const Room room = FindRoom(view, tenant);
  std::vector<Spot> spots = FittingSpots(view.machine, room, {rule.numa, rule.kinds, bytes});
  Status unfilled;
  std::erase_if(spots, [&](const Spot& spot) {
    const Status filled = CheckFilled(view, request, room, spot.nodes);
    unfilled.Update(filled);
    return !filled.ok();
  });
  if (spots.empty()) {
    return unfilled.ok() ? NoRoom(view, request, room, {}, rule.kinds) : unfilled;
  }
  const auto is_kept = [&](const Spot& spot) { return spot.nodes == request.runs_near; };
  if (std::ranges::any_of(spots, is_kept)) {
    spots = SpotsOn(view.machine, rule.kinds, {.nodes = request.runs_near, .preferred = true});
  }
  return HintList(HintsOf(spots));
}

namespace {

/// A container, and what its nodes are chosen by.
struct Candidate {
  const ContainerRequest& request;
  const Tenant tenant;
  const Need need;
};

StatusOr<Decision> PlaceByRule(const View& view, const Candidate& candidate,
                               const TopologyHint& hint, const NumaMask& held) {
  const auto& [request, tenant, need] = candidate;
  Room room = FindRoom(view, tenant);
  const std::optional<Spot> spot = ChooseSpot(FittingSpots(view.machine, room, need), hint,
                                              held.Empty() ? request.runs_near : held);
  if (!spot) {
    return NoRoom(view, request, room, hint.nodes, need.kinds);
  }
  QRM_RETURN_IF_ERROR(CheckFilled(view, request, room, spot->nodes));
  Binding binding{.tenant = tenant, .blocks = BlocksOn(spot->nodes, need), .by_rule = true};
  binding.bytes_by_node = room.books.Take(request.key, binding.blocks);
  return Decision{.allocation = Bind(*spot, OrdinaryBytes(need.bytes), binding.bytes_by_node),
                  .binding = std::move(binding),
                  .moved = room.books.Moved(view.bindings)};
}

}  // namespace

StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint, const NumaMask& held) {
  QRM_ASSIGN_OR_RETURN(Placement placement, Classify(view.config, request));
  QRM_ASSIGN_OR_RETURN(const MemoryBytes asked, BytesOf(request));
  if (asked.empty() || (!placement.rule && !placement.by_static_policy)) {
    return Decision{.allocation = Record(OrdinaryBytes(asked))};  // it must exclude no other
  }
  const Tenant tenant = TenantIn(placement, request);
  QRM_ASSIGN_OR_RETURN(
      Decision decision,
      placement.rule
          ? PlaceByRule(view,
                        {request, tenant, {placement.rule->numa, placement.rule->kinds, asked}},
                        hint, held)
          : PlaceByStaticPolicy(view, request, tenant, hint, asked));
  decision.allocation.decided_by = std::move(placement.by);
  return decision;
}

void Note(const ContainerKey& key, Decision decision, Bindings& bindings) {
  if (decision.binding.has_value()) {
    bindings[key] = *std::move(decision.binding);
  }
  for (auto& [init, blocks] : decision.inits) {
    bindings.at(init).blocks = std::move(blocks);
  }
  for (auto& [other, parts] : decision.moved) {
    bindings.at(other).bytes_by_node = std::move(parts);
  }
}

}  // namespace qrm::memory
