// Which CPUs a pool takes and gives up by its rule of place.
#pragma once

#include "api/id_set.h"
#include "plugins/cpu/config/pool_rules.h"
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

/// What decides about a pool's CPUs besides its rule.
struct Surroundings {
  const Machine& machine;
  const PlaceRule& rule;
  CpuSet offline;  ///< a core can be whole without these
  CpuSet avoided;  ///< CPUs that the pool should not have if others are free
};

/// The CPUs of cores of `kind`; all CPUs on machines with one kind. Of several kinds, the highest
/// is for performance, and all others are efficient.
CpuSet CpusOfKind(const Machine& machine, PlaceRule::Core kind);

/// The largest number of threads of a core in `cpus`; 1 without any.
int ThreadsPerCore(const Machine& machine, const CpuSet& cpus);

/// `count` CPUs of `free`, or fewer, for a pool that has `own`. As PickCpus, but CPUs that the rule
/// prefers come first: of its kind of core, near its devices, not avoided, then whole L3 caches.
/// Cores are taken whole if the rule says so. Cost: a few times that of PickCpus; with an even
/// spread, that for each CPU.
CpuSet PickPlaced(const Surroundings& around, const CpuSet& own, const CpuSet& free, int count);

/// `count` CPUs of `own` to give up, or all. As DropCpus, but CPUs that the rule does not prefer
/// come first.
CpuSet DropPlaced(const Surroundings& around, const CpuSet& own, int count);

/// The part of `cpus`, a pool's own and borrowed CPUs, that its containers run on.
CpuSet ThreadsInUse(const Machine& machine, const PlaceRule& rule, const CpuSet& cpus);

}  // namespace qrm::cpu
