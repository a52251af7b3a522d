// Which CPUs a pool takes and gives up: near its other CPUs, so that others keep whole cores.
#pragma once

#include "api/id_set.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// `count` CPUs of `free`, or all if there are fewer, for an owner of `own`. NUMA nodes, L3 caches
/// and cores with most of `own` come first. Then come those that have the missing CPUs with least
/// to spare, so that whole ones stay free; then the lowest numbers. The choice depends on the sets
/// only. Cost: O(CPUs + count x CPUs of the level with most parts).
CpuSet PickCpus(const Machine& machine, const CpuSet& own, const CpuSet& free, int count);

/// `count` CPUs of `own` to give up, or all: the reverse of PickCpus. NUMA nodes, L3 caches and
/// cores with fewest of `own` come first, whole cores before parts of cores, then the highest
/// numbers. Cost: the same.
CpuSet DropCpus(const Machine& machine, const CpuSet& own, int count);

}  // namespace qrm::cpu
