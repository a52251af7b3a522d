// The machine n4c16 of nri-plugins' tests.
#pragma once

#include <utility>

#include "topology/machine.h"

namespace qrm::cpu {

/// Four NUMA nodes of four CPUs, two in each package; CPUs 0 and 1 are a core.
inline Machine FourNodes() {
  MachineParts parts;
  for (int cpu = 0; cpu < 16; ++cpu) {
    parts.cpus.push_back({.id = cpu,
                          .core = cpu - cpu % 2,
                          .l3 = cpu - cpu % 8,
                          .node = cpu / 4,
                          .package = cpu / 8});
  }
  for (int node = 0; node < 4; ++node) {
    parts.nodes.push_back({.id = node, .package = node / 2});
  }
  return Machine(std::move(parts));
}

}  // namespace qrm::cpu
