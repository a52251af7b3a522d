// The machine and the requests of the QoS Resource Manager proposal's worked examples.
#pragma once

#include <string>

#include "api/resource.h"
#include "topology/machine.h"

namespace qrm::test {

/// 80 CPUs, 0-39 on NUMA node 0 and 40-79 on node 1, with the proposal's memory. `threads_per_core`
/// neighbours form a core, `cpus_per_l3` share a cache.
Machine ExampleMachine(int threads_per_core = 1, int cpus_per_l3 = 40);

/// A MAIN container `c0` of pod `pod` with that role, asking for `amount` of `resource`.
ContainerRequest Request(const std::string& pod, const std::string& role,
                         const std::string& resource, double amount);

}  // namespace qrm::test
