// Random histories of elastic pools and owners on random machines, checked against rules that do
// not ask how the plugin decides. QRM_POOL_HISTORIES=17000 plays a million steps.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plugins/cpu/elastic.h"
#include "plugins/cpu/pool_size.h"
#include "test/plugins/cpu/made_plugin.h"
#include "test/plugins/plugin_driver.h"
#include "test/support/manual_clock.h"
#include "test/support/rounds.h"
#include "test/support/temp_dir.h"
#include "topology/online_list.h"

namespace qrm::cpu {
namespace {

using test::Drive;
using test::Request;

constexpr const char* kRoles[] = {"a", "b", "c", "own", ""};

/// Draws everything of one history from its seed.
class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  int Below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  bool OneIn(int sides) { return Below(sides) == 0; }

 private:
  std::mt19937 random_;
};

/// 1 to 8 NUMA nodes of 1 to 4 cores with 1 to 4 threads, in L3 caches of one or two cores.
MachineParts DrawMachine(Dice& dice) {
  MachineParts parts;
  const int nodes = 1 + dice.Below(8);
  const int threads = 1 + dice.Below(4);
  const int cores = (nodes == 1 ? 3 : 1) + dice.Below(4);
  const int per_l3 = threads * (1 + dice.Below(2));
  for (int node = 0; node < nodes; ++node) {
    parts.nodes.push_back({.id = node, .package = node / 2});
    for (int i = 0; i < cores * threads; ++i) {
      const int first = node * cores * threads;
      parts.cpus.push_back({.id = first + i,
                            .core = first + i - i % threads,
                            .l3 = first + i - i % per_l3,
                            .node = node,
                            .package = node / 2});
    }
  }
  return parts;
}

/// Pools of random bounds, and a default pool that has a size or takes what is left.
std::string DrawConfig(Dice& dice, int cpus) {
  std::string text = dice.OneIn(2) ? "reserved-cpus: 0\n" : "";
  text += "roles: {own: {numa: any, share-numa-with: [\"*\"]}}\npools:\n";
  for (const char* pool : {"a", "b", "c"}) {
    const int min = dice.Below(cpus >= 12 ? 3 : 1);
    text += fmt::format(
        "  {}: {{size: {{min: {}, max: {}, ratio: {}%, step: {}}}, priority: {}, weight: {}, "
        "roles: [{}]}}\n",
        pool, min, min + 1 + dice.Below(cpus), 50 + dice.Below(150), dice.Below(3), dice.Below(2),
        1 + dice.Below(3), pool);
  }
  return dice.OneIn(2) ? text : text + "  default: {size: {min: 1}}\n";
}

ElasticSize SizeOf(const PoolConfig& pool) {
  return pool.size.value_or(ElasticSize());
}

/// One history: the plugin as the manager drives it, and what the runtime has applied.
class History {
 public:
  explicit History(unsigned seed) : dice_(seed), parts_(DrawMachine(dice_)) {
    SetOffline({});
    parts_.online = OnlineList::Open(root_.path());
    machine_ = Machine(parts_);
    text_ = DrawConfig(dice_, machine_.cpu_set().Count());
    config_ = Config(text_);
    drive_ = std::make_unique<Drive>(MakePlugin());
    pools_ = Pools();
  }

  void Step() {
    moved_freely_ = false;
    const std::string before = Exported();
    switch (dice_.Below(9)) {
      case 0:
      case 1:
        drive_->RemovePod(fmt::format("pod{}", dice_.Below(pods_ + 1)));
        break;
      case 2:
        clock_.Advance(std::chrono::seconds(20 + dice_.Below(40)));
        break;
      case 3:
        ReconcileOnce();
        break;
      case 4:
        drive_ = std::make_unique<Drive>(MakePlugin(), *drive_);
        ASSERT_EQ(Exported(), before) << "a restart moved something";
        break;
      case 5:
        TakeCpusOffOrOn();
        break;
      default:
        AdmitOne(before);
    }
    Check();
  }

  /// Whatever was, sizes are in the end what SizePools makes of those that are there.
  void Converge() {
    // The first question sees what is not needed, the others come when it may go, step by step.
    int left = machine_.cpu_set().Count() + 2;
    std::string before;
    for (std::string now = Exported(); before != now || left > machine_.cpu_set().Count(); --left) {
      ASSERT_GT(left, 0) << "it never comes to rest";
      clock_.Advance(std::chrono::seconds(30));
      ReconcileOnce();
      before = std::exchange(now, Exported());
    }
    const PoolSizes want = WantedSizes();
    for (const auto& [name, cpus] : Pools()) {
      if (want.contains(name)) {
        ASSERT_EQ(cpus.Count(), want.at(name)) << "pool " << name << " of\n" << text_;
      }
    }
  }

  int admitted() const { return admitted_; }

 private:
  std::unique_ptr<sdk::ResourcePlugin> MakePlugin() {
    return *MakeCpuPlugin(config_, machine_, clock_);
  }

  PoolMap Pools() const {
    PoolMap pools;
    for (const sdk::Pool& pool : std::as_const(*drive_).plugin().Pools()) {
      pools[pool.name] = pool.cpus;
    }
    return pools;
  }

  /// Who owns what, in text. Without the containers' own part, which is the test's, not the
  /// plugin's.
  std::string Exported() const { return std::as_const(*drive_).plugin().ExportState({}); }

  void SetOffline(const CpuSet& offline) {
    offline_ = offline;
    CpuSet online;
    for (const Cpu& cpu : parts_.cpus) {
      online.Add(cpu.id);
    }
    const std::filesystem::path folder = root_ / "sys/devices/system/cpu";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "online") << ToString(online - offline) << '\n';
  }

  /// At most a fifth of the CPUs are off, and never the first of a core.
  void TakeCpusOffOrOn() {
    CpuSet offline;
    for (const Cpu& cpu : parts_.cpus) {
      if (cpu.id != cpu.core && dice_.OneIn(8) &&
          5 * offline.Count() < static_cast<int>(parts_.cpus.size())) {
        offline.Add(cpu.id);
      }
    }
    SetOffline(offline);
    moved_freely_ = true;
    ReconcileOnce();
  }

  void AdmitOne(const std::string& before) {
    const std::string role = kRoles[dice_.Below(5)];
    const double cpus = role == "own" ? 1 + dice_.Below(4) : dice_.Below(80) / 10.0;
    const ContainerRequest request = Request(fmt::format("pod{}", pods_++), role, "cpu", cpus);
    const StatusOr<HintList> hints = drive_->plugin().Hints(request);
    const auto given = drive_->Admit(request);
    if (given.ok()) {
      ++admitted_;
      return;
    }
    ASSERT_FALSE(hints.ok() && !hints->IsImpossible())
        << "a hint that was offered does not hold: " << given.status();
    ASSERT_EQ(Exported(), before) << "a refused container changed something";
  }

  /// What the run before told is in the kernel by now; what this one tells is not yet.
  void ReconcileOnce() {
    applied_.clear();
    for (const auto& [key, grant] : drive_->grants()) {
      applied_[key] = *CpuSet::Parse(grant.allocation.value);
    }
    drive_->Reconcile();
  }

  void Check() {
    const PoolMap pools = Pools();
    ASSERT_NO_FATAL_FAILURE(CheckOwners(pools));
    ASSERT_NO_FATAL_FAILURE(CheckCpusets(pools));
    ASSERT_NO_FATAL_FAILURE(CheckMoves(pools));
    pools_ = pools;
  }

  /// P1, P5, P6: each CPU has one owner, pools are within their bounds, reserved CPUs in none.
  void CheckOwners(const PoolMap& pools) {
    CpuSet owned = config_.reserved;
    const auto own = [&](const CpuSet& cpus, const std::string& owner) {
      ASSERT_FALSE(cpus.Intersects(owned)) << owner << " has " << ToString(cpus & owned);
      owned |= cpus;
    };
    for (const auto& [name, cpus] : pools) {
      ASSERT_NO_FATAL_FAILURE(own(cpus, "pool " + name));
      if (const auto pool = config_.pools.find(name); pool != config_.pools.end()) {
        ASSERT_LE(cpus.Count(), SizeOf(pool->second).max) << name;
      }
    }
    for (const auto& [key, grant] : drive_->grants()) {
      if (grant.allocation.exclusive) {
        ASSERT_NO_FATAL_FAILURE(own(*CpuSet::Parse(grant.allocation.value), key.pod_uid));
      }
    }
    ASSERT_TRUE(owned.IsSubsetOf(machine_.cpu_set()));
  }

  /// P2, P4, P16: no cpuset is empty, and none has a CPU of another container's own, also not one
  /// that the runtime has yet to change. Only the default pool of what is left may be late.
  void CheckCpusets(const PoolMap& pools) {
    CpuSet owned;
    for (const auto& [key, grant] : drive_->grants()) {
      owned |= grant.allocation.exclusive ? *CpuSet::Parse(grant.allocation.value) : CpuSet();
    }
    PoolSizes wanted = WantedSizes();
    for (const auto& [key, grant] : drive_->grants()) {
      const CpuSet now = *CpuSet::Parse(grant.allocation.value);
      ASSERT_FALSE(now.Empty()) << key.pod_uid;
      if (grant.allocation.exclusive) {
        continue;
      }
      const std::string& role = grant.request.pod_role;
      const bool in_default = role.empty() || role == "own";
      if (in_default && !config_.pools.contains(kDefaultPool)) {
        continue;
      }
      const auto applied = applied_.find(key);
      const CpuSet used = applied == applied_.end() ? now : now | applied->second;
      const std::string pool = in_default ? kDefaultPool : role;
      ASSERT_TRUE(!(pools.at(pool) - offline_).Empty() || wanted[pool] == 0)
          << "pool " << pool << " of\n"
          << text_;
      ASSERT_FALSE(used.Intersects(owned))
          << key.pod_uid << " uses " << ToString(used & owned) << ", which others own";
    }
  }

  /// P12, P15: a pool that grows keeps its CPUs, one that shrinks a part of them.
  void CheckMoves(const PoolMap& pools) {
    for (const auto& [name, cpus] : pools) {
      const CpuSet& before = pools_.at(name);
      ASSERT_TRUE(moved_freely_ || !config_.pools.contains(name) || before.IsSubsetOf(cpus) ||
                  cpus.IsSubsetOf(before))
          << "pool " << name << " moved from " << ToString(before) << " to " << ToString(cpus);
    }
  }

  /// What the containers that are there ask for, and nothing that was.
  PoolSizes WantedSizes() const {
    int capacity = (machine_.cpu_set() - offline_ - config_.reserved).Count();
    std::map<std::string, PoolDemand> demand;
    for (const auto& [key, grant] : drive_->grants()) {
      if (grant.allocation.exclusive) {
        capacity -= (*CpuSet::Parse(grant.allocation.value) - offline_).Count();
        continue;
      }
      const std::string& role = grant.request.pod_role;
      PoolDemand& sum = demand[role.empty() || role == "own" ? kDefaultPool : role];
      sum.milli_cpus += std::llround(grant.request.quantity() * 1000);
      ++sum.containers;
    }
    capacity -= config_.pools.contains(kDefaultPool) ? 0 : 1;
    PoolAsks asks;
    for (const auto& [name, pool] : config_.pools) {
      const ElasticSize size = SizeOf(pool);
      PoolAsk ask = {.min = size.min,
                     .max = size.max,
                     .priority = pool.priority,
                     .weight = pool.weight,
                     .in_use = demand.contains(name)};
      ask.min = std::max(ask.min, ask.in_use ? 1 : 0);
      ask.wish = WishOf(demand[name], size.ratio_percent, ask);
      asks[name] = ask;
    }
    return SizePools(asks, capacity);
  }

  Dice dice_;
  test::TempDir root_;
  MachineParts parts_;
  Machine machine_;
  CpuSet offline_;
  std::string text_;
  CpuPluginConfig config_;
  test::ManualClock clock_;
  std::unique_ptr<Drive> drive_;
  PoolMap pools_;
  std::map<ContainerKey, CpuSet> applied_;  ///< what the runtime had at the last reconcile
  bool moved_freely_ = false;
  int pods_ = 0;
  int admitted_ = 0;
};

int Histories() {
  const char* const more = std::getenv("QRM_POOL_HISTORIES");
  return more != nullptr ? std::atoi(more) : test::Rounds(60);
}

TEST(PoolModelTest, RandomHistoriesKeepTheRules) {
  const int histories = Histories();
  int admitted = 0;
  for (int seed = 1; seed <= histories; ++seed) {
    History history(static_cast<unsigned>(seed));
    for (int step = 0; step < 60; ++step) {
      ASSERT_NO_FATAL_FAILURE(history.Step()) << "seed " << seed << ", step " << step;
    }
    ASSERT_NO_FATAL_FAILURE(history.Converge()) << "seed " << seed;
    admitted += history.admitted();
  }
  EXPECT_GT(admitted, 8 * histories);
}

}  // namespace
}  // namespace qrm::cpu
