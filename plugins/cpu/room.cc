// Computes what is free for a container, and tells why that is not enough.
#include "plugins/cpu/room.h"

#include <fmt/ranges.h>

#include "api/base/errorf.h"

namespace qrm::cpu {
namespace {

placement::TenantsByNode TenantsOf(const View& view) {
  placement::TenantsByNode tenants;
  for (const auto& [key, holding] : view.state.exclusive) {
    for (const int node : view.machine.NodesOf(holding.cpus)) {
      tenants[node].push_back(&holding.tenant);
    }
  }
  return tenants;
}

/// CPUs that a container may get: all of a kind, and those of them that are free.
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
  room.reusable &= room.free;
  for (const NumaNode& node : view.machine.nodes()) {
    room.amounts.total[node.id] = (node.cpus & supply.all).Count();
    room.amounts.free[node.id] = (node.cpus & room.free).Count();
  }
  return room;
}

/// Whether a container could take all CPUs that the default pool, `pool`, has.
bool CouldEmpty(const View& view, const Room& room, const ExclusiveRule& rule, const CpuSet& pool) {
  const bool at_once =
      rule.numa != placement::NumaSpan::kOne || view.machine.NodesOf(pool).Count() == 1;
  return !pool.Empty() && pool.Count() <= room.count && pool.IsSubsetOf(room.free) && at_once;
}

/// Takes a CPU of the default pool out of `room` where a container could take its last one; with
/// whole cores its core, one with few others.
void LeaveDefaultPoolOne(const View& view, const ExclusiveRule& rule, Room& room) {
  const CpuSet pool = PoolCpus(view, kDefaultPool) - view.offline;
  const bool sized = view.state.pools.contains(kDefaultPool);  // then nobody takes its CPUs
  if (sized || view.config.default_pool != kDefaultPool || !CouldEmpty(view, room, rule, pool)) {
    return;
  }
  CpuSet least;
  for (const int cpu : pool) {
    const CpuSet lost = rule.whole_cores ? view.machine.CoresOf({cpu}) & room.free : CpuSet{cpu};
    least = least.Empty() || lost.Count() < least.Count() ? lost : least;
  }
  room.free -= least;
  for (auto& [node, free] : room.amounts.free) {
    free = (view.machine.FindNode(node)->cpus & room.free).Count();
  }
}

/// "node 0: storage-service stands there; node 1: 4 free", as error messages say it.
std::string Describe(const View& view, const Room& room) {
  const placement::TenantsByNode tenants = TenantsOf(view);
  std::vector<std::string> parts;
  for (const auto& [node, free] : room.amounts.free) {
    if (!room.barred.Has(node)) {
      parts.push_back(fmt::format("node {}: {:.0f} free", node, free));
      continue;
    }
    parts.push_back(fmt::format("node {}: {} stands there", node,
                                placement::NameOfEnemy(tenants.at(node), room.tenant)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

Room UsualRoom(const View& view, const ContainerRequest& request, const OwnRule& own, int count) {
  return RoomOf(view, request, own, count,
                {.all = view.machine.cpu_set() - view.config.reserved - view.config.isolated,
                 .free = LeftCpus(view)});
}

std::vector<Room> RoomsOf(const View& view, const ContainerRequest& request, const OwnRule& own,
                          int count) {
  std::vector<Room> rooms;
  const CpuSet isolated = view.config.isolated - ExclusiveCpus(view.state);
  if (own.rule.isolated != IsolatedWish::kNever) {
    rooms.push_back(
        RoomOf(view, request, own, count, {.all = view.config.isolated, .free = isolated}));
  }
  if (own.rule.isolated != IsolatedWish::kRequire) {
    rooms.push_back(UsualRoom(view, request, own, count));
  }
  if (own.rule.isolated == IsolatedWish::kPrefer) {
    rooms.push_back(RoomOf(
        view, request, own, count,
        {.all = view.machine.cpu_set() - view.config.reserved, .free = LeftCpus(view) | isolated}));
    LeaveDefaultPoolOne(view, own.rule, rooms.back());
  }
  return rooms;
}

Status NoRoom(const View& view, const ContainerRequest& request, const Room& room,
              const NumaMask& within) {
  return Errorf(
      StatusCode::kResourceExhausted,
      "cannot place {}: no allowed NUMA nodes{} have {} CPUs for {} ({}); remove a pod or "
      "ask for fewer CPUs",
      NameOf(request), within.Empty() ? "" : fmt::format(" of {}", ToString(within)), room.count,
      placement::NameOf(room.tenant), Describe(view, room));
}

}  // namespace qrm::cpu
