// Implements the cpu plugin's decisions.
#include "plugins/cpu/policy.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "plugins/cpu/allocations.h"
#include "plugins/cpu/classes.h"
#include "plugins/cpu/config/classify.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/elastic.h"
#include "plugins/cpu/own_cpus.h"
#include "plugins/cpu/pool_place.h"
#include "plugins/cpu/room.h"
#include "plugins/rules/select.h"
#include "plugins/rules/sharing.h"
#include "topology/cpu_layout.h"

namespace qrm::cpu {
namespace {

using rules::Tenant;

/// `amount`, which is requested, as a number of exclusive CPUs.
StatusOr<int> WholeCpus(const ContainerRequest& request, double amount) {
  if (!(amount >= 1 && amount <= CpuSet::kMaxIds) || std::floor(amount) != amount) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot place {}: it gets exclusive CPUs but requests {}; request a whole number "
                  "of CPUs, at least 1",
                  rules::NameOf(request), amount);
  }
  return static_cast<int>(amount);
}

/// How many exclusive CPUs a container gets by `own`. This is known before any CPU is picked, so
/// that hints promise no more than the allocation has.
StatusOr<int> CountByRule(const View& view, const ContainerRequest& request, const OwnRule& own) {
  const double all = request.quantity();
  // The fraction goes to the pool.
  QRM_ASSIGN_OR_RETURN(const int count,
                       WholeCpus(request, own.plus.empty() ? all : std::floor(all)));
  if (own.rule.whole_cores && !request.for_whole_pod) {
    QRM_RETURN_IF_ERROR(Annotate(CheckWholeCoreCount(CpuLayout(view.machine), count),
                                 fmt::format("cannot place {}", rules::NameOf(request))));
  }
  return count;
}

/// OK when the default pool keeps a CPU after it loses `count` CPUs.
Status CheckDefaultPoolStays(const View& view, const ContainerRequest& request, int count) {
  const bool sized = view.state.pools.contains(kDefaultPool);  // then it loses no CPUs
  const int left = (PoolCpus(view, kDefaultPool) - view.offline).Count();
  if (!sized && count > 0 && view.config.default_pool == kDefaultPool && left <= count) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot place {}: requests {} exclusive CPU{}, but the shared pool has only {} "
                  "CPU{} left; request fewer CPUs or delete a pod",
                  rules::NameOf(request), count, count == 1 ? "" : "s", left, left == 1 ? "" : "s");
  }
  return OkStatus();
}

/// The same after it loses `cpus`.
Status CheckDefaultPoolStays(const View& view, const ContainerRequest& request,
                             const CpuSet& cpus) {
  return CheckDefaultPoolStays(view, request, (cpus & PoolCpus(view, kDefaultPool)).Count());
}

Decision Own(const View& view, const ContainerRequest& request, const CpuSet& cpus,
             const TopologyHint& hint, const Tenant& tenant) {
  const bool preferred = hint.preferred && view.machine.NodesOf(cpus).IsSubsetOf(hint.nodes);
  Decision decision = {
      .allocation = OwnCpus(view.machine, cpus, preferred),
      .holding = Holding{
          .cpus = cpus, .grown = GrownPart(view, cpus), .tenant = tenant, .type = request.type}};
  decision.allocation.grown = ToString(decision.holding->grown);
  return decision;
}

/// OK when all pools keep what they need beside `cpus`, which become the container's.
Status CheckPoolsStay(const View& view, const ContainerRequest& request, const ExclusiveRule& rule,
                      const CpuSet& cpus) {
  QRM_RETURN_IF_ERROR(CheckDefaultPoolStays(view, request, cpus));
  if (!rule.whole_nodes || FitBeside(view, request.key, cpus)) {
    return OkStatus();
  }
  return Errorf(StatusCode::kResourceExhausted,
                "cannot place {}: it takes all CPUs of NUMA nodes {}, and pools need some of them; "
                "remove numa_exclusive, or delete a pod",
                rules::NameOf(request), ToString(view.machine.NodesOf(cpus)));
}

/// What the static policy finds for the container.
StaticCpuRoom StaticRoom(const View& view, const ContainerRequest& request, const Room& room) {
  const CpuSet reusable = ReusableCpus(view.state, request.key, request.type) - view.offline;
  return {.free = room.free - reusable, .reusable = reusable};
}

bool IsLowerMask(const NumaMask& a, const NumaMask& b) {
  return a.CompareAsNumber(b) < 0;
}

/// The nodes of all `rooms`, by `hints_in`. The nodes of a better room are preferred; nodes where
/// pools make room are preferred only if no better room has preferred nodes.
template <typename HintsIn>
StatusOr<HintList> HintsOfRooms(const std::vector<Room>& rooms, const HintsIn& hints_in) {
  std::vector<TopologyHint> all;
  std::set<NumaMask, decltype(&IsLowerMask)> known(&IsLowerMask);
  Status refusal;
  for (const Room& room : rooms) {
    const StatusOr<std::vector<TopologyHint>> hints = hints_in(room);
    if (!hints.ok()) {
      refusal = hints.status();
      continue;
    }
    const bool may_be_preferred =
        all.empty() || (room.of_pools && std::none_of(all.begin(), all.end(), [](const auto& hint) {
                          return hint.preferred;
                        }));
    for (const TopologyHint& hint : *hints) {
      if (known.insert(hint.nodes).second) {
        all.push_back({.nodes = hint.nodes, .preferred = may_be_preferred && hint.preferred});
      }
    }
  }
  return all.empty() ? StatusOr<HintList>(refusal) : HintList(std::move(all));
}

/// The first of `rooms` in which `place_in` places the container. Pools also make room if a better
/// room has CPUs only beyond `hint`.
template <typename PlaceIn>
StatusOr<Decision> PlaceInFirst(const View& view, const std::vector<Room>& rooms,
                                const TopologyHint& hint, const PlaceIn& place_in) {
  const auto is_within = [&](const Decision& decision) {
    return hint.nodes.Empty() || !decision.holding.has_value() ||
           view.machine.NodesOf(decision.holding->cpus).IsSubsetOf(hint.nodes);
  };
  std::optional<Decision> beyond;
  Status refusal;
  for (const Room& room : rooms) {
    if (beyond.has_value() && !room.of_pools) {
      continue;
    }
    StatusOr<Decision> decision = place_in(room);
    if (!decision.ok()) {
      refusal = decision.status();
    } else if (is_within(*decision)) {
      return decision;
    } else if (!beyond.has_value()) {
      beyond = *std::move(decision);
    }
  }
  return beyond.has_value() ? StatusOr<Decision>(*std::move(beyond)) : refusal;
}

/// OK when the default pool can spare the CPUs of `room` that the container takes from it at least.
Status CheckDefaultPoolStays(const View& view, const ContainerRequest& request, const Room& room) {
  return CheckDefaultPoolStays(view, request,
                               room.count - (room.free - PoolCpus(view, kDefaultPool)).Count());
}

StatusOr<std::vector<TopologyHint>> StaticHintsIn(const View& view, const ContainerRequest& request,
                                                  const Room& room) {
  const StaticCpuRoom free = StaticRoom(view, request, room);
  QRM_RETURN_IF_ERROR(CheckDefaultPoolStays(view, request, room));
  if (KeepsItsCpus(view, request, room.free, {})) {
    return std::vector<TopologyHint>{
        {.nodes = view.machine.NodesOf(request.runs_on), .preferred = true}};
  }
  if (!request.for_whole_pod) {  // a pod's containers are checked one by one
    QRM_RETURN_IF_ERROR(Annotate(view.static_policy->CheckCores(free, room.count),
                                 fmt::format("cannot place {}", rules::NameOf(request))));
  }
  HintList hints = view.static_policy->Hints(free, room.count);
  return hints.IsImpossible() ? StatusOr<std::vector<TopologyHint>>(NoRoom(view, request, room, {}))
                              : hints.hints();
}

StatusOr<HintList> StaticHints(const View& view, const ContainerRequest& request,
                               const OwnRule& own) {
  QRM_ASSIGN_OR_RETURN(const int count, WholeCpus(request, request.quantity()));
  const std::vector<Room> rooms = UsualRooms(view, request, own, count);
  if (const auto held = view.state.exclusive.find(request.key);
      held != view.state.exclusive.end()) {
    const CpuSet& cpus = held->second.cpus;
    return count <= cpus.Count()
               ? view.static_policy->HeldHints(cpus, cpus.Count())
               : view.static_policy->Hints({.free = rooms.front().free, .reusable = cpus}, count);
  }
  return HintsOfRooms(rooms, [&](const Room& room) { return StaticHintsIn(view, request, room); });
}

StatusOr<Decision> PlaceByStaticPolicyIn(const View& view, const ContainerRequest& request,
                                         const Room& room, const TopologyHint& hint) {
  const StatusOr<CpuSet> cpus =
      KeepsItsCpus(view, request, room.free, hint.nodes)
          ? request.runs_on
          : view.static_policy->Take(StaticRoom(view, request, room), room.count, hint.nodes);
  if (!cpus.ok()) {
    return Annotate(cpus.status(), fmt::format("cannot place {}", rules::NameOf(request)));
  }
  QRM_RETURN_IF_ERROR(CheckDefaultPoolStays(view, request, *cpus));
  return Own(view, request, *cpus, hint, room.tenant);
}

StatusOr<Decision> PlaceByStaticPolicy(const View& view, const ContainerRequest& request,
                                       const TopologyHint& hint, const OwnRule& own) {
  QRM_ASSIGN_OR_RETURN(const int count, WholeCpus(request, request.quantity()));
  const std::vector<Room> rooms = UsualRooms(view, request, own, count);
  for (const Room& room : rooms) {
    if (const auto grown = GrownByStaticPolicy(view, room, hint);
        grown.has_value() && CheckDefaultPoolStays(view, request, *grown).ok()) {
      return Own(view, request, *grown, hint, room.tenant);
    }
  }
  return PlaceInFirst(view, rooms, hint, [&](const Room& room) {
    return PlaceByStaticPolicyIn(view, request, room, hint);
  });
}

/// `own`, with the CPUs that the container uses of `pool`.
StatusOr<Decision> WithPool(const View& view, const ContainerRequest& request, Decision own,
                            const std::string& pool) {
  if (pool.empty() || !own.holding.has_value()) {
    return own;
  }
  Holding& holding = *own.holding;
  CpuState then = view.state;  // without the container's exclusive CPUs
  then.exclusive[request.key] = holding;
  holding.beside = FractionOf(view.config, request, pool);
  QRM_ASSIGN_OR_RETURN(PoolPlace place, PlaceInPool(WithState(view, then), request, holding.beside,
                                                    view.machine.NodesOf(holding.cpus)));
  holding.may_share = view.machine.cpu_set();
  holding.beside.pool = place.pool;
  own.allocation.shares_of = place.pool;
  ShareBeside(holding, place.cpus, own.allocation);
  own.pools = std::move(place.pools);
  return own;
}

StatusOr<CpuSet> PickIn(const View& view, const ContainerRequest& request, const Room& room,
                        const ExclusiveRule& rule, const NumaMask& hint) {
  QRM_RETURN_IF_ERROR(CheckDefaultPoolStays(view, request, room));
  if (!rule.whole_nodes) {
    if (KeepsItsCpus(view, request, room.free, hint)) {
      return request.runs_on;
    }
    if (auto reused = ReusedCpus(view, room, rule, hint); reused.has_value()) {
      return *std::move(reused);
    }
  }
  const auto picked = PickOwnCpus(view, room, rule, hint);
  if (!picked) {
    return NoRoom(view, request, room, hint);
  }
  if (!picked->ok()) {
    return Annotate(picked->status(), fmt::format("cannot place {}", rules::NameOf(request)));
  }
  QRM_RETURN_IF_ERROR(CheckPoolsStay(view, request, rule, **picked));
  return *picked;
}

/// CPUs for a container, and the hint and tenant that they were chosen for.
struct Chosen {
  const CpuSet& cpus;
  const TopologyHint& hint;
  const Tenant& tenant;
};

StatusOr<Decision> PlaceOn(const View& view, const ContainerRequest& request, const Chosen& chosen,
                           const OwnRule& own) {
  const auto& [cpus, hint, tenant] = chosen;
  QRM_RETURN_IF_ERROR(CheckFilled(view, request, tenant, view.machine.NodesOf(cpus)));
  return WithPool(view, request, Own(view, request, cpus, hint, tenant), own.plus);
}

StatusOr<Decision> PlaceIn(const View& view, const ContainerRequest& request, const Room& room,
                           const TopologyHint& hint, const OwnRule& own) {
  QRM_ASSIGN_OR_RETURN(const CpuSet cpus, PickIn(view, request, room, own.rule, hint.nodes));
  return PlaceOn(view, request, {cpus, hint, room.tenant}, own);
}

/// Absent if it cannot keep its CPUs.
std::optional<Decision> GrowInPlace(const View& view, const ContainerRequest& request,
                                    const std::vector<Room>& rooms, const TopologyHint& hint,
                                    const OwnRule& own) {
  for (const Room& room : rooms) {
    const std::optional<CpuSet> cpus = GrownInPlace(view.machine, HeldBefore(view), room, own.rule);
    if (own.rule.whole_nodes || !cpus.has_value() ||
        !CheckDefaultPoolStays(view, request, *cpus).ok()) {
      continue;
    }
    StatusOr<Decision> decision = PlaceOn(view, request, {*cpus, hint, room.tenant}, own);
    if (decision.ok()) {
      return *std::move(decision);
    }
  }
  return std::nullopt;
}

StatusOr<Decision> PlaceExclusively(const View& view, const ContainerRequest& request,
                                    const TopologyHint& hint, const OwnRule& own) {
  QRM_ASSIGN_OR_RETURN(const int count, CountByRule(view, request, own));
  std::vector<Room> rooms = RoomsOf(view, request, own, count);
  if (auto grown = GrowInPlace(view, request, rooms, hint, own); grown.has_value()) {
    return *std::move(grown);
  }
  if (!HeldBefore(view).Empty()) {  // pools make room for growth in place, not for a move
    std::erase_if(rooms, [](const Room& room) { return room.of_pools; });
  }
  return PlaceInFirst(view, rooms, hint,
                      [&](const Room& room) { return PlaceIn(view, request, room, hint, own); });
}

/// The nodes of `room` that could serve the container. Errors: kResourceExhausted when none can.
StatusOr<std::vector<TopologyHint>> HintsIn(const View& view, const ContainerRequest& request,
                                            const Room& room, const OwnRule& own) {
  QRM_RETURN_IF_ERROR(CheckDefaultPoolStays(view, request, room));
  QRM_ASSIGN_OR_RETURN(
      std::vector<TopologyHint> fitting,
      rules::OnlyFilled(FittingMasks(view, room, own.rule), [&](const NumaMask& nodes) {
        const Status filled = CheckFilled(view, request, room.tenant, nodes);
        return filled.ok() && own.rule.whole_nodes
                   ? CheckPoolsStay(view, request, own.rule, room.free & view.machine.CpusOf(nodes))
                   : filled;
      }));
  if (fitting.empty()) {
    return NoRoom(view, request, room, {});
  }
  if (!own.plus.empty()) {  // the pool loses as many CPUs on any nodes
    QRM_RETURN_IF_ERROR(PlaceIn(view, request, room, fitting.front(), own).status());
  }
  if (IsByNode(view.config, own.plus)) {
    PreferRoomiest(view, request, own.plus, fitting);
  }
  if (own.rule.whole_nodes || KeepsItsCpus(view, request, room.free, {})) {
    return rules::KeptOrAll(std::move(fitting), view.machine.NodesOf(request.runs_on));
  }
  return fitting;
}

StatusOr<HintList> OwnHints(const View& view, const ContainerRequest& request, const OwnRule& own) {
  QRM_ASSIGN_OR_RETURN(const int count, CountByRule(view, request, own));
  return HintsOfRooms(RoomsOf(view, request, own, count),
                      [&](const Room& room) { return HintsIn(view, request, room, own); });
}

StatusOr<Decision> Shrink(const View& view, const ContainerRequest& request,
                          const Placement& placement) {
  const Holding& former = *view.former;
  const CpuSet cpus = ShrunkInPlace(view.machine, former, WholeCpusOf(request, placement));
  const TopologyHint here = {.nodes = view.machine.NodesOf(cpus), .preferred = true};
  Decision own = Own(view, request, cpus, here, former.tenant);
  return former.Shares() && !former.by_driver
             ? WithPool(view, request, std::move(own), former.beside.pool)
             : std::move(own);
}

StatusOr<Decision> PlaceOnItsOwn(const View& view, const ContainerRequest& request,
                                 const TopologyHint& hint, const Placement& placement,
                                 const ExclusiveRule& rule) {
  const OwnRule own = {rule, placement.role, placement.plus};
  return placement.by_static_policy ? PlaceByStaticPolicy(view, request, hint, own)
                                    : PlaceExclusively(view, request, hint, own);
}

/// Without `pool`, the container is recorded and its CPUs are not changed.
StatusOr<Decision> Share(const View& view, const ContainerRequest& request, const std::string& pool,
                         const TopologyHint& hint) {
  if (pool.empty()) {
    return Decision();
  }
  QRM_ASSIGN_OR_RETURN(PoolPlace place,
                       PlaceInPool(view, request, GuestOf(view.config, request, pool), hint.nodes));
  Decision decision{.allocation = ShareCpus(view.machine, place.cpus),
                    .pool = place.pool,
                    .pools = std::move(place.pools)};
  if (place.pool != pool) {  // the instance is not in the request
    decision.allocation.shares_of = place.pool;
  }
  return decision;
}

/// The configured pool of `placement`; empty for the default pool, which is open to all.
std::string PoolToPermit(const CpuPluginConfig& config, const Placement& placement) {
  const std::string_view pool =
      ConfiguredName(placement.exclusive ? placement.plus : placement.pool);
  return pool == config.default_pool ? std::string() : std::string(pool);
}

/// Whether a container that cannot be placed, with the error `refusal`, goes to the default pool.
bool GoesElsewhere(const View& view, const Placement& placement, const Status& refusal) {
  return view.config.on_full == OnFull::kShareDefault &&
         refusal.code() == StatusCode::kResourceExhausted &&
         (placement.exclusive || placement.pool != view.config.default_pool);
}

/// In the default pool. This is recorded, so that a restart does not try the target without room.
StatusOr<Decision> ShareInstead(const View& view, const ContainerRequest& request,
                                const Placement& placement) {
  const std::string& pool = view.config.default_pool;
  QRM_ASSIGN_OR_RETURN(Decision decision, Share(view, request, pool, {}));
  decision.allocation.shares_of = pool;
  decision.allocation.decided_by = fmt::format("on-full, because {} has no room", placement.by);
  decision.allocation.class_defaults = ClassDefaultsOf(view.config, {.pool = pool});
  return decision;
}

bool TakesOfPools(const View& view, const Holding& holding) {
  return std::any_of(view.state.pools.begin(), view.state.pools.end(),
                     [&](const auto& pool) { return pool.second.Intersects(holding.cpus); });
}

/// Reduces pools to the CPUs that a container with exclusive CPUs leaves.
void SizePoolsBeside(const View& view, const ContainerRequest& request, Decision& decision) {
  if (!decision.holding.has_value() || decision.pools.has_value() ||
      (!LeavesSomeIdle(view.config) && !TakesOfPools(view, *decision.holding))) {
    return;
  }
  CpuState then = view.state;
  then.exclusive[request.key] = *decision.holding;
  decision.pools = SizedPools(WithState(view, then));
}

StatusOr<HintList> HintsWhere(const View& view, const ContainerRequest& request,
                              const Placement& placement) {
  const auto held = view.state.exclusive.find(request.key);
  const bool holds = held != view.state.exclusive.end();
  if (holds && !placement.exclusive && Shrinks(held->second, request, placement)) {
    return HintList({{.nodes = view.machine.NodesOf(held->second.Baseline()), .preferred = true}});
  }
  if (!placement.exclusive) {
    return placement.pool.empty()
               ? HintList::NoPreference()
               : PoolHints(view, request, GuestOf(view.config, request, placement.pool));
  }
  const OwnRule own = {*placement.exclusive, placement.role, placement.plus};
  if (placement.by_static_policy) {
    return StaticHints(view, request, own);
  }
  if (holds) {
    return HintList({{.nodes = view.machine.NodesOf(held->second.cpus), .preferred = true}});
  }
  return OwnHints(view, request, own);
}

}  // namespace

StatusOr<HintList> CpuHints(const View& view, const ContainerRequest& request) {
  QRM_ASSIGN_OR_RETURN(const Placement placement, Classify(view.config, request));
  StatusOr<HintList> hints = HintsWhere(view, request, placement);
  if (!hints.ok() && GoesElsewhere(view, placement, hints.status())) {
    return PoolHints(view, request, GuestOf(view.config, request, view.config.default_pool));
  }
  return hints;
}

StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint) {
  QRM_ASSIGN_OR_RETURN(const Placement placement, Classify(view.config, request));
  const bool shrinks = view.former != nullptr && Shrinks(*view.former, request, placement);
  StatusOr<Decision> decision =
      shrinks               ? Shrink(view, request, placement)
      : placement.exclusive ? PlaceOnItsOwn(view, request, hint, placement, *placement.exclusive)
                            : Share(view, request, placement.pool, hint);
  if (decision.ok()) {
    decision->allocation.pool = PoolToPermit(view.config, placement);
    decision->allocation.decided_by = placement.by;
    if (shrinks && !placement.exclusive) {
      decision->allocation.decided_by += ", but it keeps the CPUs of its first start";
    }
    decision->allocation.class_defaults = ClassDefaultsOf(view.config, placement);
    SizePoolsBeside(view, request, *decision);
  } else if (GoesElsewhere(view, placement, decision.status())) {
    decision = ShareInstead(view, request, placement);
  }
  return decision;
}

void Note(const CpuPluginConfig& config, const ContainerRequest& request, Decision decision,
          CpuState& state) {
  if (decision.pools.has_value()) {
    state.pools = *std::move(decision.pools);
  }
  if (decision.holding.has_value()) {
    state.exclusive[request.key] = *std::move(decision.holding);
  } else if (!decision.pool.empty()) {
    state.shared[request.key] = GuestOf(config, request, std::move(decision.pool));
  }
}

}  // namespace qrm::cpu
