// What the machine has for one container that wants CPUs of its own.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/cpu/state.h"
#include "plugins/rules/sharing.h"
#include "topology/hint_generation.h"

namespace qrm::cpu {

/// How a container gets CPUs of its own, as whom, and beside which pool (empty: none).
struct OwnRule {
  const ExclusiveRule& rule;
  const std::string& role;
  const std::string& plus;
};

/// CPUs that the container may get, and where.
struct Room {
  int count = 0;  ///< of CPUs that it wants
  rules::Tenant tenant;
  CpuSet all;       ///< CPUs of the kind that it gets
  CpuSet free;      ///< those that it may take
  CpuSet reusable;  ///< those of them that containers of its pod have which never run beside it
  NumaMask barred;  ///< nodes whose tenants do not tolerate it, or it them
  NodeAmounts amounts;
  bool of_pools = false;  ///< elastic pools give some of `free` up
};

/// What there is but for isolated CPUs; then that, and what elastic pools have beyond their
/// containers' requests. These leave such CPUs when the container starts.
std::vector<Room> UsualRooms(const View& view, const ContainerRequest& request, const OwnRule& own,
                             int count);

/// Where the container may get its CPUs from, the best first.
std::vector<Room> RoomsOf(const View& view, const ContainerRequest& request, const OwnRule& own,
                          int count);

/// kResourceExhausted, naming what each node has free and who bars it. `within`: the nodes that
/// were looked at; empty: all.
Status NoRoom(const View& view, const ContainerRequest& request, const Room& room,
              const NumaMask& within);

}  // namespace qrm::cpu
