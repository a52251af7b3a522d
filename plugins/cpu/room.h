// The CPUs that the machine has for one container with exclusive CPUs.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/cpu/state.h"
#include "plugins/placement/sharing.h"
#include "topology/hint_generation.h"

namespace qrm::cpu {

/// How a container gets exclusive CPUs, its role there, and its further pool (empty: none).
struct OwnRule {
  const ExclusiveRule& rule;
  const std::string& role;
  const std::string& plus;
};

/// CPUs that the container may get, and their nodes.
struct Room {
  int count = 0;  ///< of CPUs that it needs
  placement::Tenant tenant;
  CpuSet all;       ///< CPUs of the kind that it gets
  CpuSet free;      ///< the part that it may take
  CpuSet reusable;  ///< the part that containers of its pod have which never run at the same time
  NumaMask barred;  ///< nodes whose tenants do not tolerate it, or that it does not tolerate
  NodeAmounts amounts;
  bool of_pools = false;  ///< elastic pools give up a part of `free`
};

/// The CPUs that are not isolated; then also those that elastic pools have beyond their containers'
/// requests. The latter leave their pools when the container starts.
std::vector<Room> UsualRooms(const View& view, const ContainerRequest& request, const OwnRule& own,
                             int count);

/// The CPUs that the container may get, the best first.
std::vector<Room> RoomsOf(const View& view, const ContainerRequest& request, const OwnRule& own,
                          int count);

/// kResourceExhausted with the free CPUs of each node, and the roles that exclude the container.
/// `within`: the nodes that were searched; empty: all.
Status NoRoom(const View& view, const ContainerRequest& request, const Room& room,
              const NumaMask& within);

}  // namespace qrm::cpu
