// Which CPUs a pool takes and gives up: near to those that it has, and leaving others whole cores.
#pragma once

#include "api/id_set.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// `count` CPUs of `free`, or all when it has fewer, for an owner of `own`. NUMA nodes, L3 caches
/// and cores of which it has most come first; then those that hold what is still missing with least
/// to spare, so that whole ones stay free; then the lowest numbers. What is chosen depends on the
/// sets alone. Cost: O(CPUs + count x CPUs of the level with most parts).
CpuSet PickCpus(const Machine& machine, const CpuSet& own, const CpuSet& free, int count);

/// `count` CPUs of `own` to give up, or all: the reverse of PickCpus. NUMA nodes, L3 caches and
/// cores of which the owner has fewest come first, whole cores before parts of them, then the
/// highest numbers. Cost: the same.
CpuSet DropCpus(const Machine& machine, const CpuSet& own, int count);

}  // namespace qrm::cpu
