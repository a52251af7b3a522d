// What elastic pools ask for, and what there is for them.
#pragma once

#include "plugins/cpu/elastic.h"
#include "plugins/cpu/sizing/pool_size.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// What each elastic pool and instance asks for, by `view.advised` where it is named there. An
/// instance is there while it has containers or CPUs. Units: CPUs that are owned: where containers
/// run on one thread of each core, all of its threads count. Cost: O(containers).
PoolAsks AsksOf(const View& view);

/// The same without `newcomer`, wherever it is by `view`, and with it in its pool.
struct AsksAround {
  PoolAsks before;
  PoolAsks after;
};
AsksAround AsksAroundOf(const View& view, const Newcomer& newcomer);

/// The least that an elastic pool, or an instance of it, has while it has containers.
int LeastInUse(const Machine& machine, const PoolConfig& pool);

/// What elastic pools can share: no container's own, not reserved or isolated, in no pool of one
/// size.
CpuSet ElasticCpus(const View& view);

/// How many of `elastic` are for elastic pools: a default pool of what is left keeps one.
int CapacityOf(const View& view, const CpuSet& elastic);

}  // namespace qrm::cpu
