// Implements the rules of named pools.
#include "plugins/cpu/pools.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/elastic.h"
#include "plugins/cpu/place.h"

namespace qrm::cpu {
namespace {

Status Overlap(const std::string& pool, const CpuSet& cpus, const std::string& owner) {
  return Errorf(StatusCode::kInvalidArgument,
                "cannot give pool {} CPUs {}: {}; choose CPUs that are free", pool, ToString(cpus),
                owner);
}

Status CheckPool(const View& view, const std::string& pool, const CpuSet& cpus) {
  const CpuSet unknown = cpus - view.machine.cpu_set();
  if (!unknown.Empty() && !IsElastic(view.config, pool)) {  // an elastic pool takes other CPUs
    return Overlap(pool, unknown,
                   fmt::format("the machine has {}", ToString(view.machine.cpu_set())));
  }
  if (cpus.Intersects(view.config.reserved)) {
    return Overlap(pool, cpus & view.config.reserved, "they are reserved");
  }
  if (cpus.Intersects(view.config.isolated)) {
    return Overlap(pool, cpus & view.config.isolated, "they are isolated");
  }
  for (const auto& [key, holding] : view.state.exclusive) {
    if (cpus.Intersects(holding.cpus)) {
      return Overlap(pool, cpus & holding.cpus,
                     fmt::format("container {} of pod {} owns them", key.container, key.pod_uid));
    }
  }
  const uint64_t containers = ContainersIn(view.state, pool);
  if (cpus.Empty() && containers > 0) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot empty pool {}: {} containers use it; leave it a CPU or delete them", pool,
                  containers);
  }
  return OkStatus();
}

/// A pool's configuration as saved on disk: while it does not change, the pool keeps its CPUs. The
/// CPUs of an elastic pool follow its containers, whatever its bounds are.
std::string ConfiguredText(const CpuPluginConfig& config, const std::string& pool) {
  return IsElastic(config, pool) ? "elastic" : ToString(config.pools.at(pool).cpus);
}

/// Takes from elastic pools the CPUs that are now reserved, isolated or in a pool of fixed size.
void YieldToFixed(const CpuPluginConfig& config, PoolMap& pools) {
  CpuSet fixed = config.reserved | config.isolated;
  for (const auto& [name, cpus] : pools) {
    fixed |= IsElastic(config, name) ? CpuSet() : cpus;
  }
  for (auto& [name, cpus] : pools) {
    cpus -= IsElastic(config, name) ? fixed : CpuSet();
  }
}

/// The saved advice; unreadable advice is dropped.
PoolSizes ReadAdvised(const nlohmann::json& saved) {
  PoolSizes advised;
  const auto written = saved.find("advised");
  if (written == saved.end() || !written->is_object()) {
    return advised;
  }
  for (const auto& [pool, cpus] : written->items()) {
    if (cpus.is_number_integer() && cpus >= 0 && cpus <= CpuSet::kMaxIds) {
      advised[pool] = cpus.get<int>();
    }
  }
  return advised;
}

std::string Names(const CpuPluginConfig& config) {
  std::vector<std::string> names;
  names.reserve(config.pools.size());
  for (const auto& [name, pool] : config.pools) {
    names.push_back(name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Status CheckPools(const View& view, const PoolMap& pools) {
  std::map<std::string, CpuSet> checked;
  for (const auto& [name, cpus] : pools) {
    QRM_RETURN_IF_ERROR(CheckPool(view, name, cpus));
    for (const auto& [other, theirs] : checked) {
      if (cpus.Intersects(theirs)) {
        return Overlap(name, cpus & theirs, fmt::format("pool {} has them", other));
      }
    }
    checked[name] = cpus;
  }
  CpuState changed = view.state;
  changed.pools = pools;
  if (view.config.default_pool == kDefaultPool && !IsElastic(view.config, kDefaultPool) &&
      PoolCpus({view.machine, view.config, changed}, kDefaultPool).Empty()) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot set pools: they leave no CPU for containers without a pool; leave one, or "
        "set default-pool to a pool");
  }
  return OkStatus();
}

StatusOr<PoolMap> ResizePools(const View& view, const PoolMap& cpus_by_pool) {
  PoolMap pools = view.state.pools;
  for (const auto& [name, cpus] : cpus_by_pool) {
    if (name == kDefaultPool && !IsElastic(view.config, name)) {
      continue;
    }
    if (IsElastic(view.config, name)) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot set pool {}: it is elastic, and its containers set its size; change "
                    "pools.{}.size in the configuration",
                    name, ConfiguredName(name));
    }
    if (!pools.contains(name)) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot set pool {}: there is no such pool; the pools are {}", name,
                    Names(view.config));
    }
    pools[name] = cpus;
  }
  CpuState changed = view.state;
  changed.pools = pools;
  YieldToFixed(view.config, changed.pools);
  changed.pools = SizedPools(WithState(view, changed));
  pools = changed.pools;
  QRM_RETURN_IF_ERROR(CheckPools(view, pools));
  const CpuSet left = PoolCpus({view.machine, view.config, changed}, kDefaultPool);
  const auto wanted = cpus_by_pool.find(kDefaultPool);
  if (wanted != cpus_by_pool.end() && wanted->second != left) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot set pool {} to {}: it has the CPUs that other pools leave, which are {}; "
                  "set the other pools",
                  kDefaultPool, ToString(wanted->second), ToString(left));
  }
  return pools;
}

std::string SavePools(const CpuPluginConfig& config, const SavedPools& saved) {
  nlohmann::json pools = nlohmann::json::object();
  for (const auto& [name, cpus] : saved.pools) {
    if (FindPool(config, name) != nullptr) {
      pools[name] = {{"cpus", ToString(cpus)}, {"configured", ConfiguredText(config, name)}};
    }
  }
  nlohmann::json text = {{"pools", std::move(pools)}};
  if (!saved.retiring.Empty()) {
    text["retiring"] = ToString(saved.retiring);
  }
  if (!saved.advised.empty()) {
    text["advised"] = saved.advised;
  }
  return text.dump();
}

StatusOr<SavedPools> LoadPools(const CpuPluginConfig& config, const std::string& text) {
  Status unreadable =
      Errorf(StatusCode::kDataLoss, "cannot read the saved pools; set the pools again: '{}'", text);
  const nlohmann::json saved = nlohmann::json::parse(text, nullptr, false);
  if (!saved.is_object() || !saved.contains("pools") || !saved["pools"].is_object()) {
    return unreadable;
  }
  const auto written = saved.find("retiring");
  if (written != saved.end() && !written->is_string()) {
    return unreadable;
  }
  const StatusOr<CpuSet> retiring =
      CpuSet::Parse(written == saved.end() ? "" : written->get<std::string>());
  if (!retiring.ok()) {
    return unreadable;
  }
  PoolMap pools = InitialState(config).pools;
  for (auto& [name, cpus] : pools) {
    cpus = IsElastic(config, name) ? CpuSet() : cpus;
  }
  for (const auto& [name, entry] : saved["pools"].items()) {
    if (!entry.is_object() || !entry.contains("cpus") || !entry["cpus"].is_string() ||
        !entry.contains("configured") || !entry["configured"].is_string()) {
      return unreadable;
    }
    const StatusOr<CpuSet> cpus = CpuSet::Parse(entry["cpus"].get<std::string>());
    if (!cpus.ok()) {
      return unreadable;
    }
    if (FindPool(config, name) != nullptr &&
        ConfiguredText(config, name) == entry["configured"].get<std::string>()) {
      pools[name] = *cpus;
    }
  }
  YieldToFixed(config, pools);
  return SavedPools{std::move(pools), *retiring, ReadAdvised(saved)};
}

namespace {

/// None if the default pool has all CPUs that are left.
CpuSet IdleBeside(const View& view, const PoolMap& pools) {
  if (!pools.contains(kDefaultPool)) {
    return {};
  }
  CpuSet idle = ShareableCpus(view) - view.offline;
  for (const auto& [name, cpus] : pools) {
    idle -= cpus;
  }
  return idle;
}

CpuSet Within(const Machine& machine, const CpuSet& idle, IdleSpan span, const CpuSet& own) {
  switch (span) {
    case IdleSpan::kNone:
      break;
    case IdleSpan::kNuma:
      return idle & machine.CpusOf(machine.NodesOf(own));
    case IdleSpan::kPackage:
      return idle & machine.PackagesOf(machine.NodesOf(own));
    case IdleSpan::kAll:
      return idle;
  }
  return {};
}

bool BorrowsIdleCpus(const CpuPluginConfig& config) {
  return std::any_of(config.pools.begin(), config.pools.end(),
                     [](const auto& pool) { return pool.second.borrow_idle != IdleSpan::kNone; });
}

/// How many of its CPUs the pool `name` does not lend. If its use counts: all until it is measured.
int KeptBy(const View& view, const std::string& name, const LendRule& rule) {
  if (!rule.keeps_used) {
    return rule.keep;
  }
  if (ContainersIn(view.state, name) == 0) {
    return 0;
  }
  const PoolSizes used = view.used == nullptr ? PoolSizes() : *view.used;
  const auto found = used.find(name);
  return found == used.end() ? CpuSet::kMaxIds : found->second;
}

/// Lends `lent` to all pools that `rule` names.
void Lend(const LendRule& rule, const CpuSet& lent, const PoolMap& pools, PoolMap& borrowed) {
  for (const auto& [borrower, cpus] : pools) {
    if (std::find(rule.to.begin(), rule.to.end(), ConfiguredName(borrower)) != rule.to.end()) {
      borrowed[borrower] |= lent;
    }
  }
}

}  // namespace

CpuSet IdleCpus(const View& view) {
  return IdleBeside(view, view.state.pools);
}

PoolMap Borrow(const View& view, const PoolMap& pools) {
  PoolMap borrowed;
  const CpuSet idle = BorrowsIdleCpus(view.config) ? IdleBeside(view, pools) : CpuSet();
  for (const auto& [name, own] : pools) {
    const PoolConfig* const config = FindPool(view.config, name);
    if (config == nullptr) {
      continue;
    }
    if (config->borrow_idle != IdleSpan::kNone) {
      borrowed[name] |= Within(view.machine, idle, config->borrow_idle, own);
    }
    if (!config->lend.to.empty()) {
      const CpuSet online = own - view.offline;
      const int surplus = online.Count() - KeptBy(view, name, config->lend);
      Lend(config->lend, DropCpus(view.machine, online, surplus), pools, borrowed);
    }
  }
  std::erase_if(borrowed, [](const auto& pool) { return pool.second.Empty(); });
  return borrowed;
}

CpuSet UsedCpus(const View& view, const PoolMap& pools, const std::string& pool) {
  const auto own = pools.find(pool);
  CpuSet cpus = own == pools.end() ? PoolCpus(view, pool) : own->second;
  const PoolMap borrowed = Borrow(view, pools);
  if (const auto more = borrowed.find(pool); more != borrowed.end()) {
    cpus |= more->second;
  }
  const PoolConfig* const config = FindPool(view.config, pool);
  return config == nullptr ? cpus : ThreadsInUse(view.machine, config->place, cpus);
}

CpuSet UsedCpus(const View& view, const std::string& pool) {
  return UsedCpus(view, view.state.pools, pool);
}

}  // namespace qrm::cpu
