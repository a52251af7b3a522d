// A random history of elastic pools and owners on a random machine, checked against rules that do
// not ask how the plugin decides.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plugins/cpu/config/classify.h"
#include "plugins/cpu/elastic.h"
#include "plugins/cpu/sizing/pool_size.h"
#include "test/plugins/cpu/drawn_node.h"
#include "test/plugins/cpu/made_plugin.h"
#include "test/plugins/plugin_driver.h"
#include "test/support/await.h"
#include "test/support/manual_clock.h"
#include "test/support/sysfs_machine.h"
#include "test/support/temp_dir.h"
#include "topology/online_list.h"

namespace qrm::cpu {

/// One history: the plugin as the manager drives it, and what the runtime has applied.
class History {
 public:
  using Drive = test::Drive;

  /// `keys` are more of the configuration. One in eight has classes of CPUs.
  explicit History(unsigned seed, const std::string& keys = "")
      : dice_(seed), parts_(DrawMachine(dice_)), has_classes_(dice_.OneIn(8)) {
    SetOffline({});
    parts_.online = OnlineList::Open(root_.path());
    if (has_classes_) {
      parts_.root = root_.path();
      WriteFrequencies();
    }
    machine_ = Machine(parts_);
    text_ = DrawConfig(dice_, machine_.cpu_set().Count(), has_classes_) + keys;
    config_ = Config(text_);
    drive_ = std::make_unique<Drive>(MakePlugin());
    Begin();
    pools_ = Pools();
  }
  virtual ~History() { drive_->plugin().Retire(); }
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  void Step() {
    moved_freely_ = false;
    const std::string before = Exported();
    switch (dice_.Below(15)) {
      case 0:
      case 1:
        RemoveOne();
        break;
      case 2:
        clock_.Advance(std::chrono::seconds(20 + dice_.Below(40)));
        break;
      case 3:
        ReconcileTwice();
        break;
      case 4:
        Restart();
        ASSERT_EQ(Exported(), before) << "a restart moved something";
        break;
      case 5:
        TakeCpusOffOrOn();
        break;
      case 6:
        ResizeOne(before);
        break;
      case 7:
        ReloadAnotherRule(before);
        break;
      case 8:
        ReloadOnePool();
        break;
      case 9:
        Advise();
        break;
      case 10:
        AskForWhatPoolsGaveUp();
        break;
      default:
        Admit(DrawRequest(), before);
    }
    Check();
  }

  /// P8, P17: whatever was, also what was advised, sizes are in the end what SizePools makes of
  /// those that are there.
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

  /// P11: once more at rest, a container that came and went leaves the sizes as they were, and
  /// pools that it did not change have their CPUs still.
  void ComeAndGo() {
    const PoolMap before = Pools();
    const std::string pod = fmt::format("pod{}", pods_);
    ASSERT_NO_FATAL_FAILURE(Admit(DrawRequest(), Exported()));
    ASSERT_NO_FATAL_FAILURE(Converge());
    const PoolMap meanwhile = Pools();
    drive_->RemovePod(pod);
    ASSERT_NO_FATAL_FAILURE(Converge());
    for (const auto& [name, cpus] : Pools()) {
      ASSERT_EQ(cpus.Count(), before.at(name).Count()) << name << " of\n" << text_;
      if (config_.pools.contains(name) && meanwhile.at(name) == before.at(name)) {
        ASSERT_EQ(ToString(cpus), ToString(before.at(name))) << name << " of\n" << text_;
      }
    }
  }

  /// P20: each CPU is tuned as its owner's class says, and without one as it was found.
  void CheckTuning() {
    if (!has_classes_) {
      return;
    }
    std::map<int, std::string> wanted;
    for (const Cpu& cpu : parts_.cpus) {
      wanted[cpu.id] = TuningBy(ClassOf(cpu.id));
    }
    const auto other = [&] {
      return std::find_if(wanted.begin(), wanted.end(),
                          [&](const auto& cpu) { return TuningOf(cpu.first) != cpu.second; });
    };
    ASSERT_TRUE(test::Await([&] { return other() == wanted.end(); }))
        << "CPU " << other()->first << " has " << TuningOf(other()->first) << ", its class has "
        << other()->second << ", by\n"
        << text_;
  }

  int admitted() const { return admitted_; }

  /// Who owns what, in text. Without the containers' own part, which is the test's, not the
  /// plugin's.
  std::string Exported() const { return std::as_const(*drive_).plugin().ExportState({}); }

 protected:
  Dice& dice() { return dice_; }

 private:
  /// What somebody outside wishes.
  virtual void Advise() {}

  static constexpr const char* kRoles[] = {"a", "b", "c", "own", ""};

  static ElasticSize SizeOf(const PoolConfig& pool) { return pool.size.value_or(ElasticSize()); }

  std::unique_ptr<sdk::ResourcePlugin> MakePlugin() {
    return *MakeCpuPlugin(config_, machine_, clock_);
  }
  void Begin() { drive_->plugin().Begin(has_classes_ ? root_.path() : ""); }

  void Restart() {
    drive_->plugin().Retire();
    drive_ = std::make_unique<Drive>(MakePlugin(), *drive_);
    Begin();
  }

  /// P13.
  void ReloadAnotherRule(const std::string& before) {
    config_ = Config(
        text_ + fmt::format("rules: [{{select: {{role: late{}}}, grant: own}}]\n", dice_.Below(9)));
    Restart();
    ASSERT_EQ(Exported(), before) << "a rule of nobody moved somebody";
  }

  /// P13: with other keys of one pool, which make it larger or smaller, the others move only as far
  /// as their sizes follow from that.
  void ReloadOnePool() {
    const PoolMap before = Pools();
    const std::string pool(1, static_cast<char>('a' + dice_.Below(3)));
    const std::size_t line = text_.find(fmt::format("  {}: {{size", pool));
    for (const char* key : {"priority: ", "weight: "}) {
      text_[text_.find(key, line) + std::strlen(key)] = static_cast<char>('1' + dice_.Below(3));
    }
    config_ = Config(text_);
    Restart();
    for (const auto& [name, cpus] : Pools()) {
      ASSERT_TRUE(!config_.pools.contains(name) || cpus.Count() != before.at(name).Count() ||
                  cpus == before.at(name))
          << "a reload of pool " << pool << " moved pool " << name << " from "
          << ToString(before.at(name)) << " to " << ToString(cpus);
    }
  }

  std::filesystem::path PolicyOf(int cpu) const {
    return root_ / fmt::format("sys/devices/system/cpu/cpufreq/policy{}", cpu);
  }
  void WriteFrequencies() const {
    test::WriteSysfsFile(root_ / "proc/sys/kernel/random/boot_id", "first");
    for (const Cpu& cpu : parts_.cpus) {
      const std::pair<const char*, std::string> files[] = {
          {"affected_cpus", std::to_string(cpu.id)},
          {"cpuinfo_min_freq", "800000"},
          {"cpuinfo_max_freq", "3000000"},
          {"base_frequency", "2000000"},
          {"scaling_min_freq", "800000"},
          {"scaling_max_freq", "3000000"}};
      for (const auto& [name, value] : files) {
        test::WriteSysfsFile(PolicyOf(cpu.id) / name, value);
      }
    }
  }
  /// The bounds of a CPU's frequency.
  std::string TuningOf(int cpu) const {
    std::string bounds;
    for (const char* file : {"scaling_min_freq", "scaling_max_freq"}) {
      std::ifstream stream(PolicyOf(cpu) / file);
      std::string value;
      std::getline(stream, value);
      bounds += value + " ";
    }
    return bounds;
  }
  /// By DrawConfig's classes.
  static std::string TuningBy(const std::string& name) {
    return name == "fast"   ? "2000000 3000000 "
           : name == "slow" ? "800000 2000000 "
                            : "800000 3000000 ";
  }
  /// That of the owner, as the configuration says; of an offline CPU none.
  std::string ClassOf(int cpu) const {
    if (offline_.Has(cpu)) {
      return "";
    }
    for (const auto& [key, grant] : drive_->grants()) {
      if (grant.allocation.exclusive && CpuSet::Parse(grant.allocation.value)->Has(cpu)) {
        return config_.roles.at("own").cpu_class;
      }
    }
    for (const auto& [name, cpus] : Pools()) {
      if (cpus.Has(cpu)) {
        const auto pool = config_.pools.find(name);
        return pool == config_.pools.end() ? "" : pool->second.cpu_class;
      }
    }
    return config_.reserved.Has(cpu) ? config_.reserved_class : config_.idle_class;
  }

  PoolMap Pools() const {
    PoolMap pools;
    for (const sdk::Pool& pool : std::as_const(*drive_).plugin().Pools()) {
      pools[pool.name] = pool.cpus;
    }
    return pools;
  }

  /// P22: what fitted before fits when somebody is gone, unless that serves others who lacked some.
  void RemoveOne() {
    const ContainerRequest next = DrawRequest();
    const bool fitted = Fits(next) && !SomebodyLacks();
    drive_->RemovePod(fmt::format("pod{}", dice_.Below(pods_ + 1)));
    ASSERT_TRUE(!fitted || Fits(next)) << next.quantity() << " CPUs for role " << next.pod_role
                                       << " fitted while there were more containers, by\n"
                                       << text_;
  }

  /// Whether the CPUs that are online are too few for each pool to have its minimum, and for each
  /// that is in use to have one.
  bool SomebodyLacks() const {
    const PoolMap pools = Pools();
    const bool below =
        std::any_of(config_.pools.begin(), config_.pools.end(), [&](const auto& pool) {
          return (pools.at(pool.first) - offline_).Count() < SizeOf(pool.second).min;
        });
    return below ||
           std::any_of(drive_->grants().begin(), drive_->grants().end(), [&](const auto& entry) {
             const sdk::Grant& grant = entry.second;
             return !grant.allocation.exclusive &&
                    (PoolsOf(grant.request, pools) - offline_).Empty();
           });
  }

  bool Fits(const ContainerRequest& request) {
    const StatusOr<HintList> hints = drive_->plugin().Hints(request);
    return hints.ok() && !hints->IsImpossible();
  }

  ContainerRequest DrawRequest() {
    const std::string role = kRoles[dice_.Below(5)];
    const double cpus = role == "own" ? 1 + dice_.Below(4) : dice_.Below(80) / 10.0;
    return test::Request(fmt::format("pod{}", pods_), role, "cpu", cpus);
  }

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

  /// P22, too. At most a fifth of the CPUs are off, and never the first of a core.
  void TakeCpusOffOrOn() {
    CpuSet offline;
    for (const Cpu& cpu : parts_.cpus) {
      if (cpu.id != cpu.core && dice_.OneIn(8) &&
          5 * offline.Count() < static_cast<int>(parts_.cpus.size())) {
        offline.Add(cpu.id);
      }
    }
    ASSERT_NO_FATAL_FAILURE(ReconcileOnce());  // pools follow advice by now, and not again at once
    const ContainerRequest next = DrawRequest();
    const bool fitted = offline.IsSubsetOf(offline_) && Fits(next) && !SomebodyLacks();
    SetOffline(offline);
    moved_freely_ = true;
    ReconcileOnce();
    ASSERT_TRUE(!fitted || Fits(next)) << next.quantity() << " CPUs for role " << next.pod_role
                                       << " fitted while fewer CPUs were online, by\n"
                                       << text_;
  }

  /// P16: what pools have just given up is nobody's own yet.
  void AskForWhatPoolsGaveUp() {
    clock_.Advance(std::chrono::seconds(40));
    ASSERT_NO_FATAL_FAILURE(ReconcileOnce());
    const auto cpus = static_cast<double>(1 + dice_.Below(machine_.cpu_set().Count()));
    Admit(test::Request(fmt::format("pod{}", pods_), "own", "cpu", cpus), Exported());
  }

  void Admit(const ContainerRequest& request, const std::string& before) {
    ++pods_;
    const StatusOr<HintList> hints = drive_->plugin().Hints(request);
    const auto given = drive_->Admit(request);
    // P19: what decides is always the same, and told as it was.
    const StatusOr<Placement> by = Classify(config_, request);
    ASSERT_TRUE(by.ok()) << by.status();
    ASSERT_EQ(Classify(config_, request)->by, by->by);
    if (given.ok()) {
      ++admitted_;
      ASSERT_EQ(given->decided_by, by->by);
      return;
    }
    ASSERT_FALSE(hints.ok() && !hints->IsImpossible())
        << "a hint that was offered does not hold: " << given.status();
    ASSERT_EQ(Exported(), before) << "a refused container changed something";
  }

  /// P7: a plan of what was planned moves nothing.
  void ReconcileTwice() {
    ASSERT_NO_FATAL_FAILURE(ReconcileOnce());
    const std::string planned = Exported();
    ASSERT_NO_FATAL_FAILURE(ReconcileOnce());
    ASSERT_EQ(Exported(), planned) << text_;
  }

  /// P10, P15: whoever grows keeps its CPUs, also when that is refused.
  void ResizeOne(const std::string& before) {
    if (drive_->grants().empty()) {
      return;
    }
    const auto grant =
        std::next(drive_->grants().begin(), dice_.Below(static_cast<int>(drive_->grants().size())));
    const ResourceAllocation had = grant->second.allocation;
    const std::string pod = grant->second.request.pod_name;
    const double cpus = had.quantity + 1 + dice_.Below(6);
    const auto given =
        drive_->Admit(test::Request(pod, grant->second.request.pod_role, "cpu", cpus));
    if (!given.ok()) {
      ASSERT_EQ(Exported(), before) << "a refused resize changed something";
      return;
    }
    ASSERT_EQ(given->exclusive, had.exclusive);
    const CpuSet now = *CpuSet::Parse(given->value);
    const CpuSet then = *CpuSet::Parse(had.value);
    ASSERT_TRUE(!had.exclusive || then.IsSubsetOf(now))
        << had.value << " became " << given->value << " by\n"
        << text_;
  }

  /// What the run before told is in the kernel by now; what this one tells is not yet.
  void ReconcileOnce() {
    applied_.clear();
    for (const auto& [key, grant] : drive_->grants()) {
      applied_[key] = *CpuSet::Parse(grant.allocation.value);
    }
    drive_->Reconcile();
    lately_borrowed_ = std::exchange(borrowed_since_, Borrowed());
    for (const auto& [key, grant] : drive_->grants()) {
      const CpuSet own = PoolsOf(grant.request, Pools());
      if (!grant.allocation.exclusive && !own.Empty()) {
        ASSERT_EQ(grant.allocation.value, ToString(own | PoolsOf(grant.request, Borrowed())))
            << key.pod_uid;
      }
    }
  }

  /// Those of the pool of a container that shares CPUs.
  static CpuSet PoolsOf(const ContainerRequest& request, const PoolMap& pools) {
    const std::string& role = request.pod_role;
    return pools.at(role.empty() || role == "own" ? kDefaultPool : role);
  }

  PoolMap Borrowed() const {
    PoolMap pools;
    for (const sdk::Pool& pool : std::as_const(*drive_).plugin().Pools()) {
      pools[pool.name] = pool.borrowed;
    }
    return pools;
  }

  void Check() {
    const PoolMap pools = Pools();
    const PoolMap borrowed = Borrowed();
    for (const auto& [name, cpus] : borrowed) {
      borrowed_since_[name] |= cpus;
    }
    ASSERT_NO_FATAL_FAILURE(CheckOwners(pools));
    ASSERT_NO_FATAL_FAILURE(CheckBorrowed(pools, borrowed));
    ASSERT_NO_FATAL_FAILURE(CheckKept(pools, borrowed));
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

  /// P2, P3, P6: what is borrowed is idle or lent, and a pool that may use all idle CPUs does.
  void CheckBorrowed(const PoolMap& pools, const PoolMap& borrowed) {
    CpuSet idle = machine_.cpu_set() - offline_ - config_.reserved;
    for (const auto& [name, cpus] : pools) {
      idle -= cpus;
    }
    for (const auto& [key, grant] : drive_->grants()) {
      idle -= grant.allocation.exclusive ? *CpuSet::Parse(grant.allocation.value) : CpuSet();
    }
    for (const auto& [name, pool] : config_.pools) {
      CpuSet allowed = pool.borrow_idle == IdleSpan::kNone ? CpuSet() : idle;
      for (const auto& [lender, other] : config_.pools) {
        const bool lends =
            std::find(other.lend.to.begin(), other.lend.to.end(), name) != other.lend.to.end();
        allowed |= lends ? pools.at(lender) : CpuSet();
      }
      ASSERT_TRUE(borrowed.at(name).IsSubsetOf(allowed))
          << name << " borrows " << ToString(borrowed.at(name) - allowed) << " by\n"
          << text_;
      ASSERT_TRUE(pool.borrow_idle != IdleSpan::kAll || idle.IsSubsetOf(borrowed.at(name))) << name;
    }
  }

  /// P3: a lender has some for itself, and lends the others.
  void CheckKept(const PoolMap& pools, const PoolMap& borrowed) {
    for (const auto& [name, pool] : config_.pools) {
      const CpuSet present = pools.at(name) - offline_;
      CpuSet lent;
      for (const auto& [borrower, cpus] : borrowed) {
        lent |= cpus & present;
      }
      const int kept = pool.lend.to.empty() ? present.Count() : pool.lend.keep;
      ASSERT_EQ(lent.Count(), std::max(present.Count() - kept, 0)) << name << " of\n" << text_;
    }
  }

  /// P2, P4, P16: no cpuset is empty, and none has a CPU of another container's own, also not one
  /// that the runtime has yet to change. Only the default pool of what is left may be late, and
  /// those that borrowed what was idle.
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
      const CpuSet wrong = (used & owned) - borrowed_since_[pool] - lately_borrowed_[pool];
      ASSERT_TRUE(wrong.Empty()) << key.pod_uid << " uses " << ToString(wrong)
                                 << ", which others own";
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
  const test::TempDir root_ = test::TempDir::InMemory();
  MachineParts parts_;
  const bool has_classes_;
  Machine machine_;
  CpuSet offline_;
  std::string text_;
  CpuPluginConfig config_;
  test::ManualClock clock_;
  std::unique_ptr<Drive> drive_;
  PoolMap pools_;
  std::map<ContainerKey, CpuSet> applied_;  ///< what the runtime had at the last reconcile
  PoolMap borrowed_since_;                  ///< what was borrowed at any time since then
  PoolMap lately_borrowed_;                 ///< and between that one and the one before
  bool moved_freely_ = false;
  int pods_ = 0;
  int admitted_ = 0;
};

}  // namespace qrm::cpu
