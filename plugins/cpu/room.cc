// Computes the free CPUs for a container, and explains why they are not enough.
#include "plugins/cpu/room.h"

#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "plugins/cpu/elastic.h"
#include "plugins/cpu/pool_asks.h"
#include "plugins/rules/select.h"

namespace qrm::cpu {
namespace {

rules::TenantsByNode TenantsOf(const View& view) {
  rules::TenantsByNode tenants;
  for (const auto& [key, holding] : view.state.exclusive) {
    for (const int node : view.machine.NodesOf(holding.cpus)) {
      tenants[node].push_back(&holding.tenant);
    }
  }
  return tenants;
}

/// CPUs that a container may get: all CPUs of a kind, and the free part.
struct Supply {
  CpuSet all;
  CpuSet free;
};

Room RoomOf(const View& view, const ContainerRequest& request, const OwnRule& own, int count,
            const Supply& supply) {
  Room room = {.count = count};
  room.all = supply.all;
  room.tenant = {.pod_uid = request.key.pod_uid, .role = own.role, .share = own.rule.share};
  room.barred = BarredNodes(TenantsOf(view), room.tenant);
  room.reusable = ReusableCpus(view.state, request.key, request.type) & supply.all;
  room.free = (supply.free | room.reusable) - view.offline - view.retiring -
              view.machine.CpusOf(room.barred);
  if (own.rule.whole_cores) {
    room.free -= view.machine.CoresOf(view.machine.cpu_set() - room.free);
  }
  if (own.rule.whole_nodes) {
    for (const NumaNode& node : view.machine.nodes()) {
      if (!((node.cpus & supply.all) - view.offline).IsSubsetOf(room.free)) {
        room.barred.Add(node.id);
      }
    }
    room.free -= view.machine.CpusOf(room.barred);
  }
  room.reusable &= room.free;
  for (const NumaNode& node : view.machine.nodes()) {
    room.amounts.total[node.id] = (node.cpus & supply.all).Count();
    room.amounts.free[node.id] = (node.cpus & room.free).Count();
  }
  return room;
}

/// Whether a container could take all CPUs of the default pool, `pool`.
bool CouldEmpty(const View& view, const Room& room, const ExclusiveRule& rule, const CpuSet& pool) {
  const bool at_once =
      rule.numa != rules::NumaSpan::kOne || view.machine.NodesOf(pool).Count() == 1;
  return !pool.Empty() && pool.Count() <= room.count && pool.IsSubsetOf(room.free) && at_once;
}

/// Removes a CPU of the default pool from `room` if a container could take its last one. With whole
/// cores, removes that CPU's core, preferably one with few CPUs of other owners.
void LeaveDefaultPoolOne(const View& view, const ExclusiveRule& rule, Room& room) {
  const CpuSet pool = PoolCpus(view, kDefaultPool) - view.offline;
  const bool sized = view.state.pools.contains(kDefaultPool);  // then it loses no CPUs
  if (rule.whole_nodes || sized || view.config.default_pool != kDefaultPool ||
      !CouldEmpty(view, room, rule, pool)) {
    return;
  }
  CpuSet least;
  const CpuSet others = pool - HeldBefore(view);  // a container that grows keeps its CPUs
  for (const int cpu : others.Empty() ? pool : others) {
    const CpuSet lost = rule.whole_cores ? view.machine.CoresOf({cpu}) & room.free : CpuSet{cpu};
    least = least.Empty() || lost.Count() < least.Count() ? lost : least;
  }
  room.free -= least;
  for (auto& [node, free] : room.amounts.free) {
    free = (view.machine.FindNode(node)->cpus & room.free).Count();
  }
}

Supply UsualSupply(const View& view) {
  return {.all = view.machine.cpu_set() - view.config.reserved - view.config.isolated,
          .free = LeftCpus(view)};
}

/// A number of CPUs, and the supply that they are to come from.
struct Wanted {
  int count = 0;
  const Supply& supply;
};

/// Adds the room that elastic pools make beside `wanted.supply`, if they can make any. Containers
/// may still run on CPUs that pools gave up before or give up now: the manager moves both.
void AddRoomOfPools(View view, const ContainerRequest& request, const OwnRule& own,
                    const Wanted& wanted, std::vector<Room>& rooms) {
  if (!HasElasticPools(view.config)) {
    return;
  }
  CpuSet given_up = ShareableCpus(view) - wanted.supply.free;
  if (own.rule.whole_nodes) {  // pools with room elsewhere move
    given_up = ElasticCpus(view) - wanted.supply.free;
  } else {
    for (const auto& [pool, cpus] : PoolsAsRequested(view)) {
      given_up -= cpus;
    }
  }
  if (given_up.Empty() && view.retiring.Empty()) {
    return;
  }
  view.retiring = {};
  Room& room =
      rooms.emplace_back(RoomOf(view, request, own, wanted.count,
                                {.all = wanted.supply.all, .free = wanted.supply.free | given_up}));
  room.of_pools = true;
  LeaveDefaultPoolOne(view, own.rule, room);
}

/// "node 0: occupied by storage-service, node 1: 4 free", for errors.
std::string Describe(const View& view, const Room& room) {
  const rules::TenantsByNode tenants = TenantsOf(view);
  std::vector<std::string> parts;
  for (const auto& [node, free] : room.amounts.free) {
    const auto here = tenants.find(node);
    const bool is_occupied = here != tenants.end() && !BarredNodes({*here}, room.tenant).Empty();
    parts.push_back(is_occupied             ? fmt::format("node {}: occupied by {}", node,
                                                          rules::NameOfEnemy(here->second, room.tenant))
                    : room.barred.Has(node) ? fmt::format("node {}: others use a part of it", node)
                                            : fmt::format("node {}: {:.0f} free", node, free));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::vector<Room> UsualRooms(const View& view, const ContainerRequest& request, const OwnRule& own,
                             int count) {
  const Supply usual = UsualSupply(view);
  std::vector<Room> rooms = {RoomOf(view, request, own, count, usual)};
  AddRoomOfPools(view, request, own, {count, usual}, rooms);
  return rooms;
}

std::vector<Room> RoomsOf(const View& view, const ContainerRequest& request, const OwnRule& own,
                          int count) {
  std::vector<Room> rooms;
  const CpuSet isolated = view.config.isolated - ExclusiveCpus(view.state);
  Supply supply = UsualSupply(view);
  if (own.rule.isolated != IsolatedWish::kNever) {
    rooms.push_back(
        RoomOf(view, request, own, count, {.all = view.config.isolated, .free = isolated}));
  }
  if (own.rule.isolated != IsolatedWish::kRequire) {
    rooms.push_back(RoomOf(view, request, own, count, supply));
  }
  if (own.rule.isolated == IsolatedWish::kPrefer) {
    supply = {.all = view.machine.cpu_set() - view.config.reserved, .free = supply.free | isolated};
    rooms.push_back(RoomOf(view, request, own, count, supply));
    LeaveDefaultPoolOne(view, own.rule, rooms.back());
  }
  if (own.rule.isolated != IsolatedWish::kRequire) {
    AddRoomOfPools(view, request, own, {count, supply}, rooms);
  }
  return rooms;
}

Status NoRoom(const View& view, const ContainerRequest& request, const Room& room,
              const NumaMask& within) {
  return Errorf(StatusCode::kResourceExhausted,
                "cannot place {}: no allowed NUMA nodes{} have {} CPUs for {}; request fewer CPUs "
                "or delete a pod ({})",
                rules::NameOf(request),
                within.Empty() ? "" : fmt::format(" of {}", ToString(within)), room.count,
                rules::NameOf(room.tenant), Describe(view, room));
}

}  // namespace qrm::cpu
