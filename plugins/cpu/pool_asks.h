// What elastic pools ask for, and the CPUs that they can have.
#pragma once

#include <cstdint>

#include "plugins/cpu/elastic.h"
#include "plugins/cpu/sizing/pool_size.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// What each elastic pool and instance asks for; `view.advised` takes precedence. An instance
/// exists while it has containers or CPUs. Units: owned CPUs: if containers run on one thread of
/// each core, all threads of the core count. Cost: O(containers).
PoolAsks AsksOf(const View& view);

/// What pools ask for without `candidate`, even if `view` has it, and with it in its pool.
struct AsksAround {
  PoolAsks before;
  PoolAsks after;
};
AsksAround AsksAroundOf(const View& view, const Candidate& candidate);

/// What the containers of its pod's pool request together with `candidate`. Units: thousandths of a
/// CPU.
int64_t MilliCpusWith(const View& view, const Candidate& candidate);

/// The minimum of an elastic pool, or of an instance of it, while it has containers.
int LeastInUse(const Machine& machine, const PoolConfig& pool);

/// The CPUs that elastic pools can share: not exclusive, reserved or isolated, and in no pool of
/// fixed size.
CpuSet ElasticCpus(const View& view);

/// How many of `elastic` elastic pools can have: a default pool of what is left keeps one CPU.
int CapacityOf(const View& view, const CpuSet& elastic);

}  // namespace qrm::cpu
