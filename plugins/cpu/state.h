// The owners of CPUs: a value, rebuilt from grants and saved pools.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/cpu/config/config.h"
#include "plugins/cpu/sizing/pool_size.h"
#include "plugins/rules/sharing.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"
#include "topology/static_cpu_policy.h"

namespace qrm::cpu {

/// Pools and instances of pools by name: kDefaultPool only when it has a size, never kReservedPool.
using PoolMap = std::map<std::string, CpuSet>;

/// A container that uses a pool.
struct Guest {
  std::string pool;
  int64_t milli_cpus = 0;   ///< that it requests from the pool
  int64_t milli_limit = 0;  ///< the most that it may use of it; without a limit, its request
  NumaMask near;            ///< the nodes of the devices that the pool is to be near for it
  ContainerType type = ContainerType::kMain;
  double lost = 0;  ///< exclusive CPUs that the machine no longer has

  bool operator==(const Guest&) const = default;
};

/// The CPUs of one container, and what its neighbours must know.
struct Holding {
  CpuSet cpus;
  /// The part that it gives up when it shrinks; the rest is its baseline. CPUs that the machine no
  /// longer has stay in it, since their loss leaves the baseline as it was.
  CpuSet grown;
  rules::Tenant tenant;
  ContainerType type = ContainerType::kMain;
  CpuSet may_share;        ///< CPUs that it also uses while a pool has them; empty: none
  Guest beside;            ///< that pool, and what it requests from it
  bool by_driver = false;  ///< a compute driver chose them, not the rules of this plugin
  double lost = 0;         ///< how many exclusive CPUs the machine no longer has

  bool Shares() const { return !may_share.Empty(); }
  CpuSet Baseline() const { return cpus - grown; }
  bool operator==(const Holding&) const = default;
};

/// What a container asks a pool for.
Guest GuestOf(const CpuPluginConfig& config, const ContainerRequest& request, std::string pool);
/// What a container with whole exclusive CPUs asks a pool for in addition.
Guest FractionOf(const CpuPluginConfig& config, const ContainerRequest& request, std::string pool);

/// All allocations. Invariant: pools and exclusive CPUs are disjoint and within the machine; two
/// containers own the same CPU only when they run in turn.
struct CpuState {
  PoolMap pools;
  std::map<ContainerKey, Holding> exclusive;
  std::map<ContainerKey, Guest> shared;  ///< without containers whose CPUs are not changed

  bool operator==(const CpuState&) const = default;
};

class PlanMemo;

/// The input of a decision; all of it outlives the view.
struct View {
  const Machine& machine;
  const CpuPluginConfig& config;
  const CpuState& state;
  const StaticCpuPolicy* static_policy = nullptr;  ///< set when the configuration asks for it
  CpuSet offline;                     ///< CPUs of the machine that nothing can run on now
  const CpuLayout* layout = nullptr;  ///< of the machine; null: made for each request
  CpuSet retiring;           ///< that containers of pools may still run on, though no pool has them
  PlanMemo* memo = nullptr;  ///< of plans from this state; null: none
  const PoolSizes* advised = nullptr;  ///< what pools ask for in place of their containers
  /// What the container had until now, without CPUs if it shared; null for a new container.
  const Holding* former = nullptr;
  /// CPUs that pools need by their use; null: not measured.
  const PoolSizes* used = nullptr;
};

/// The exclusive CPUs that the container had until now.
CpuSet HeldBefore(const View& view);

/// `view` of another state, which outlives it; without a memo.
View WithState(View view, const CpuState& state);

/// The configured pools, without allocations.
CpuState InitialState(const CpuPluginConfig& config);

CpuSet ExclusiveCpus(const CpuState& state);

/// Calls `use` with each container that uses a pool, and what it asks the pool for.
template <typename Use>
void ForEachGuest(const CpuState& state, const Use& use) {
  for (const auto& [key, guest] : state.shared) {
    use(key, guest);
  }
  for (const auto& [key, holding] : state.exclusive) {
    if (holding.Shares()) {
      use(key, holding.beside);
    }
  }
}

/// The number of containers that use `pool`, including those with exclusive CPUs beside it.
uint64_t ContainersIn(const CpuState& state, const std::string& pool);

/// The CPUs that are neither reserved, isolated nor exclusive: those that pools may have.
CpuSet ShareableCpus(const View& view);

/// The part of these in no named pool: CPUs that may become exclusive.
CpuSet LeftCpus(const View& view);

/// The CPUs that init containers of the pod of `key` have, but none of its other containers except
/// `key` itself. A container that starts after them may have these CPUs, too. Source: Kubernetes
/// 1.36, static policy, updateCPUsToReuse. An init container that runs again, before the others do,
/// may have those of the main container.
CpuSet ReusableCpus(const CpuState& state, const ContainerKey& key, ContainerType type);

/// Whether a running container without a record keeps its CPUs: as many as it requests, of `free`,
/// and within `hint` (empty nodes: anywhere).
bool KeepsItsCpus(const View& view, const ContainerRequest& request, const CpuSet& free,
                  const NumaMask& hint);

/// The reserved CPUs that a default pool without a size has too, under the static policy.
CpuSet ReservedOfDefaultPool(const View& view);

/// The CPUs of a named pool, of kDefaultPool or of kReservedPool; empty for an unknown one.
CpuSet PoolCpus(const View& view, const std::string& pool);

/// A rebuilt state, and one sentence for each repair.
struct Rebuilt {
  CpuState state;
  std::vector<std::string> repairs;
};

/// The state after a restart: containers keep their CPUs. If the configuration or the machine
/// changed, these CPUs leave the pools, and containers lose CPUs that no longer exist. Elastic
/// pools grow to what their containers need, or to `advised` instead.
Rebuilt Rebuild(const Machine& machine, const CpuPluginConfig& config, PoolMap pools,
                const sdk::Grants& grants, const PoolSizes& advised);

}  // namespace qrm::cpu
