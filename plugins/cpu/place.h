// Which CPUs a pool takes and gives up by its rule of place.
#pragma once

#include "api/id_set.h"
#include "plugins/cpu/config/pool_rules.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// What decides about one pool's CPUs beside its rule.
struct Surroundings {
  const Machine& machine;
  const PlaceRule& rule;
  CpuSet offline;  ///< a core is whole without those
  CpuSet avoided;  ///< CPUs that the pool would rather not have
};

/// The CPUs of cores of `kind`; all on machines with one kind. Of several kinds the highest is for
/// performance, and all others are efficient.
CpuSet CpusOfKind(const Machine& machine, PlaceRule::Core kind);

/// Those of `cpus` of whose cores all online CPUs are among them.
CpuSet WholeCores(const Machine& machine, const CpuSet& offline, const CpuSet& cpus);

/// The greatest number of threads of a core among `cpus`; 1 without any.
int ThreadsPerCore(const Machine& machine, const CpuSet& cpus);

/// `count` CPUs of `free`, or fewer, for a pool that has `own`: as PickCpus, but those that the
/// rule prefers before others: of the kind of core, near its devices, not avoided, then whole L3
/// caches. Cores
/// are taken whole where the rule says so. Cost: a few times that of PickCpus; with an even spread
/// for each CPU.
CpuSet PickPlaced(const Surroundings& around, const CpuSet& own, const CpuSet& free, int count);

/// `count` CPUs of `own` to give up, or all: as DropCpus, but those first that the rule would not
/// have.
CpuSet DropPlaced(const Surroundings& around, const CpuSet& own, int count);

/// Those of `cpus`, which a pool owns and borrows, that its containers run on.
CpuSet ThreadsInUse(const Machine& machine, const PlaceRule& rule, const CpuSet& cpus);

}  // namespace qrm::cpu
