// Computes the owners of CPUs.
#include "plugins/cpu/state.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "api/container_turns.h"
#include "plugins/cpu/config/classify.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/devices.h"
#include "plugins/cpu/elastic.h"
#include "plugins/rules/select.h"

namespace qrm::cpu {
namespace {

constexpr int64_t kMilliPerCpu = 1000;

/// Which neighbours a container with CPUs tolerates. If its role is no longer configured, it
/// tolerates all, so that only the rules of its neighbours count.
rules::Tenant TenantOf(const CpuPluginConfig& config, const ContainerRequest& request) {
  rules::Tenant tenant = {.pod_uid = request.key.pod_uid, .role = request.pod_role};
  const StatusOr<Placement> placement = Classify(config, request);
  const std::optional<ExclusiveRule> rule = placement.ok() ? placement->exclusive : std::nullopt;
  if (rule.has_value()) {
    tenant.role = placement->role;
    tenant.share = rule->share;
  } else {
    tenant.share.anyone = true;
  }
  return tenant;
}

/// The pool of a container that shares, whatever the current configuration says; empty if its CPUs
/// are not changed.
std::string PoolOf(const CpuPluginConfig& config, const ContainerRequest& request) {
  const StatusOr<Placement> placement = Classify(config, request);
  return placement.ok() && !placement->exclusive ? placement->pool : config.default_pool;
}

/// Collects the repairs of one rebuild.
class Rebuilder {
 public:
  Rebuilder(const Machine& machine, const CpuPluginConfig& config, PoolMap pools)
      : machine_(machine), config_(config) {
    result_.state.pools = std::move(pools);
  }

  void Add(const sdk::Grant& grant) {
    if (!grant.allocation->exclusive) {
      AddShared(grant);
      return;
    }
    const CpuSet had = CpuSet::Parse(grant.allocation->value).value_or(CpuSet());
    const CpuSet cpus = (had & machine_.cpu_set()) - TakenFrom(grant.request);
    if (cpus != had) {
      result_.repairs.push_back(fmt::format("{} keeps {} of its CPUs '{}'; the others are lost",
                                            rules::NameOf(grant.request), cpus.Count(),
                                            grant.allocation->value));
    }
    if (cpus.Empty()) {
      Guest& guest = result_.state.shared[grant.request.key];
      guest = GuestOf(config_, grant.request, config_.default_pool);
      guest.lost = grant.allocation->lacks + had.Count();
      return;
    }
    if (cpus.Intersects(config_.reserved)) {
      result_.repairs.push_back(fmt::format("{} keeps CPUs {}, which are reserved now",
                                            rules::NameOf(grant.request),
                                            ToString(cpus & config_.reserved)));
    }
    taken_ |= cpus;
    result_.state.exclusive[grant.request.key] =
        Holding{.cpus = cpus,
                .grown = CpuSet::Parse(grant.allocation->grown).value_or(CpuSet()),
                .tenant = TenantOf(config_, grant.request),
                .type = grant.request.type,
                .may_share = CpuSet::Parse(grant.allocation->may_share).value_or(CpuSet()),
                .beside = BesideOf(grant),
                .by_driver = grant.allocation->decided_by.empty(),
                .lost = grant.allocation->lacks + had.Count() - cpus.Count()};
  }

  Rebuilt Finish() && {
    for (auto& [name, cpus] : result_.state.pools) {
      if (cpus.Intersects(taken_)) {
        result_.repairs.push_back(fmt::format("pool {} loses CPUs {}, which are exclusive", name,
                                              ToString(cpus & taken_)));
        cpus -= taken_;
      }
    }
    return std::move(result_);
  }

 private:
  /// The pool that a container with exclusive CPUs also uses; the default pool if that pool no
  /// longer exists.
  Guest BesideOf(const sdk::Grant& grant) const {
    const std::string& pool = grant.allocation->shares_of;
    return IsPool(pool) ? FractionOf(config_, grant.request, pool) : Guest{.pool = kDefaultPool};
  }

  bool IsPool(const std::string& name) const {
    return name == kDefaultPool || FindPool(config_, name) != nullptr;
  }

  void AddShared(const sdk::Grant& grant) {
    // Set if the container's target had no room, or its pool has instances by NUMA node.
    const std::string& instead = grant.allocation->shares_of;
    std::string pool = IsPool(instead) ? instead : PoolOf(config_, grant.request);
    if (!pool.empty()) {
      Guest& guest = result_.state.shared[grant.request.key];
      guest = GuestOf(config_, grant.request, std::move(pool));
      guest.lost = grant.allocation->lacks;
    }
  }

  /// CPUs of other containers that this container may not share.
  CpuSet TakenFrom(const ContainerRequest& request) const {
    CpuSet taken;
    for (const auto& [key, holding] : result_.state.exclusive) {
      if (key.pod_uid != request.key.pod_uid || !RunInTurn(holding.type, request.type)) {
        taken |= holding.cpus;
      }
    }
    return taken;
  }

  const Machine& machine_;
  const CpuPluginConfig& config_;
  CpuSet taken_;
  Rebuilt result_;
};

}  // namespace

Guest GuestOf(const CpuPluginConfig& config, const ContainerRequest& request, std::string pool) {
  const double requested = request.quantity();
  const double most = std::max(request.limit.value_or(requested), requested);
  NumaMask near = NodesOfDevices(config, request, pool);
  return {.pool = std::move(pool),
          .milli_cpus = std::llround(requested * kMilliPerCpu),
          .milli_limit = std::llround(most * kMilliPerCpu),
          .near = std::move(near),
          .type = request.type};
}

Guest FractionOf(const CpuPluginConfig& config, const ContainerRequest& request, std::string pool) {
  Guest guest = GuestOf(config, request, std::move(pool));
  guest.milli_cpus %= kMilliPerCpu;
  guest.milli_limit = guest.milli_cpus;
  return guest;
}

CpuSet HeldBefore(const View& view) {
  return view.former == nullptr ? CpuSet() : view.former->cpus;
}

View WithState(View view, const CpuState& state) {
  return {view.machine,
          view.config,
          state,
          view.static_policy,
          std::move(view.offline),
          view.layout,
          std::move(view.retiring),
          nullptr,
          view.advised,
          nullptr,
          view.used};
}

CpuState InitialState(const CpuPluginConfig& config) {
  CpuState state;
  for (const auto& [name, pool] : config.pools) {
    if (!pool.instances.has_value()) {
      state.pools[name] = pool.cpus;
    }
  }
  return state;
}

CpuSet ExclusiveCpus(const CpuState& state) {
  CpuSet cpus;
  for (const auto& [key, holding] : state.exclusive) {
    cpus |= holding.cpus;
  }
  return cpus;
}

uint64_t ContainersIn(const CpuState& state, const std::string& pool) {
  uint64_t containers = 0;
  ForEachGuest(state, [&](const ContainerKey& /*key*/, const Guest& guest) {
    containers += guest.pool == pool ? 1 : 0;
  });
  return containers;
}

CpuSet ShareableCpus(const View& view) {
  return view.machine.cpu_set() - view.config.reserved - view.config.isolated -
         ExclusiveCpus(view.state);
}

CpuSet LeftCpus(const View& view) {
  CpuSet left = ShareableCpus(view);
  for (const auto& [name, cpus] : view.state.pools) {
    left -= cpus;
  }
  return left;
}

CpuSet ReusableCpus(const CpuState& state, const ContainerKey& key, ContainerType type) {
  CpuSet in_turn;
  CpuSet of_others;
  for (auto held = state.exclusive.lower_bound({key.pod_uid, ""});
       held != state.exclusive.end() && held->first.pod_uid == key.pod_uid; ++held) {
    const Holding& holding = held->second;
    const bool is_before = holding.type == ContainerType::kInit ||
                           (holding.type == ContainerType::kMain && type == ContainerType::kInit);
    if (held->first != key) {
      (is_before && RunInTurn(holding.type, type) ? in_turn : of_others) |= holding.cpus;
    }
  }
  return in_turn - of_others;
}

bool KeepsItsCpus(const View& view, const ContainerRequest& request, const CpuSet& free,
                  const NumaMask& hint) {
  return request.runs_on.Count() == static_cast<int>(request.quantity()) &&
         request.runs_on.IsSubsetOf(free) &&
         (hint.Empty() || view.machine.NodesOf(request.runs_on).IsSubsetOf(hint));
}

CpuSet ReservedOfDefaultPool(const View& view) {
  const bool with_reserved =
      view.config.static_mode && !view.config.static_mode->strict_reservation;
  return with_reserved ? view.config.reserved - ExclusiveCpus(view.state) : CpuSet();
}

CpuSet PoolCpus(const View& view, const std::string& pool) {
  if (pool == kReservedPool) {
    return view.config.reserved;
  }
  if (pool == kDefaultPool && !view.state.pools.contains(kDefaultPool)) {
    return LeftCpus(view) | ReservedOfDefaultPool(view);
  }
  const auto found = view.state.pools.find(pool);
  return found == view.state.pools.end() ? CpuSet() : found->second;
}

Rebuilt Rebuild(const Machine& machine, const CpuPluginConfig& config, PoolMap pools,
                const sdk::Grants& grants, const PoolSizes& advised) {
  Rebuilder rebuilder(machine, config, std::move(pools));
  for (const auto& [key, grant] : grants) {
    rebuilder.Add(grant);
  }
  Rebuilt rebuilt = std::move(rebuilder).Finish();
  View view{machine, config, rebuilt.state, nullptr, machine.OfflineNow()};
  view.advised = &advised;
  rebuilt.state.pools = SizedPools(view);
  return rebuilt;
}

}  // namespace qrm::cpu
