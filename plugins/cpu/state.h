// Who has which CPUs: a value, rebuilt from grants and saved pools.
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
  int64_t milli_cpus = 0;   ///< that it requests of the pool
  int64_t milli_limit = 0;  ///< the most that it may use of it; without a limit what it requests
  NumaMask near;            ///< where the devices are that the pool is to be near to for it
  ContainerType type = ContainerType::kMain;
  double lost = 0;  ///< CPUs of its own that the machine no longer has

  bool operator==(const Guest&) const = default;
};

/// The CPUs of one container, and who it is to its neighbours.
struct Holding {
  CpuSet cpus;
  CpuSet grown;  ///< those of them that it gives up when it shrinks; the others are its baseline
  rules::Tenant tenant;
  ContainerType type = ContainerType::kMain;
  CpuSet may_share;        ///< CPUs that it uses beside its own while a pool has them; empty: none
  Guest beside;            ///< that pool, and what it requests of it
  bool by_driver = false;  ///< a compute driver gave them, not the rules of this plugin
  double lost = 0;         ///< how many CPUs of its own the machine no longer has

  bool Shares() const { return !may_share.Empty(); }
  CpuSet Baseline() const { return cpus - grown; }
  bool operator==(const Holding&) const = default;
};

/// "container c of pod ns/p", as error messages name it.
std::string NameOf(const ContainerRequest& request);

/// What a container asks of a pool.
Guest GuestOf(const CpuPluginConfig& config, const ContainerRequest& request, std::string pool);
/// What a container with whole CPUs of its own asks of a pool beside them.
Guest FractionOf(const CpuPluginConfig& config, const ContainerRequest& request, std::string pool);

/// What has been given. Invariant: pools and exclusive CPUs are disjoint and within the machine;
/// two containers own the same CPU only when they run in turn.
struct CpuState {
  PoolMap pools;
  std::map<ContainerKey, Holding> exclusive;
  std::map<ContainerKey, Guest> shared;  ///< without those whose CPUs are not touched

  bool operator==(const CpuState&) const = default;
};

class PlanMemo;

/// What a decision is made of; all of it outlives the view.
struct View {
  const Machine& machine;
  const CpuPluginConfig& config;
  const CpuState& state;
  const StaticCpuPolicy* static_policy = nullptr;  ///< set when the configuration asks for it
  CpuSet offline;                     ///< CPUs of the machine that nothing can run on now
  const CpuLayout* layout = nullptr;  ///< of the machine; null: it is made for each request
  CpuSet retiring;           ///< that containers of pools may still run on, though no pool has them
  PlanMemo* memo = nullptr;  ///< of plans by this state; null: none is kept
  const PoolSizes* advised = nullptr;  ///< what pools ask for instead of their containers
  /// What the container that is placed has had until now, without CPUs where it shared; null for
  /// one that is new.
  const Holding* former = nullptr;
};

/// What the container that is placed has had for itself until now.
CpuSet HeldBefore(const View& view);

/// `view` of another state, which outlives it; without a memo.
View WithState(View view, const CpuState& state);

/// The pools as configured, and nothing given.
CpuState InitialState(const CpuPluginConfig& config);

CpuSet ExclusiveCpus(const CpuState& state);

/// Calls `use` with each container that uses a pool, and what it asks of it.
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

/// The number of containers that use `pool`, those beside CPUs of their own among them.
uint64_t ContainersIn(const CpuState& state, const std::string& pool);

/// The CPUs that are neither reserved, isolated nor exclusive: those that pools may have.
CpuSet ShareableCpus(const View& view);

/// Those of them that are in no named pool: those that may become exclusive.
CpuSet LeftCpus(const View& view);

/// The CPUs that init containers of the pod of `key` hold and none of its others but `key` itself:
/// a container that starts after them may have them too. Source: Kubernetes 1.36, static policy,
/// updateCPUsToReuse. An init container that runs again, before the others do, may have those of
/// the main one.
CpuSet ReusableCpus(const CpuState& state, const ContainerKey& key, ContainerType type);

/// Whether a container that runs without a record keeps the CPUs that it has: as many as it asks
/// for, of `free`, and within `hint` (empty nodes: anywhere).
bool KeepsItsCpus(const View& view, const ContainerRequest& request, const CpuSet& free,
                  const NumaMask& hint);

/// The CPUs of a named pool, of kDefaultPool or of kReservedPool; empty for an unknown one.
CpuSet PoolCpus(const View& view, const std::string& pool);

/// A rebuilt state, and what had to be repaired, one sentence each.
struct Rebuilt {
  CpuState state;
  std::vector<std::string> repairs;
};

/// The state after a restart: containers keep the CPUs they have. Where the configuration or the
/// machine changed meanwhile, their CPUs leave the pools, and CPUs that are gone leave them.
/// Elastic pools grow to what their containers need, or `advised` says instead.
Rebuilt Rebuild(const Machine& machine, const CpuPluginConfig& config, PoolMap pools,
                const sdk::Grants& grants, const PoolSizes& advised);

}  // namespace qrm::cpu
