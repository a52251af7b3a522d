// A random history of elastic pools and owners on a random machine, checked against rules that do
// not depend on the plugin's algorithm.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plugins/cpu/config/classify.h"
#include "test/plugins/cpu/drawn_node.h"
#include "test/plugins/cpu/driven_node.h"
#include "test/plugins/cpu/pool_invariants.h"

namespace qrm::cpu {

/// One history: the plugin as the manager drives it, and what the runtime has applied.
class History {
 public:
  /// `keys` are added to the configuration. One history in eight has classes of CPUs.
  explicit History(unsigned seed, const std::string& keys = "")
      : dice_(seed), node_(DrawMachine(dice_), dice_.OneIn(8) ? Tuned::kYes : Tuned::kNo) {
    text_ = DrawConfig(dice_, node_.machine().cpu_set().Count(), node_.is_tuned()) + keys;
    node_.Start(text_);
    pools_ = node_.Pools();
  }
  virtual ~History() = default;
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
        node_.clock().Advance(std::chrono::seconds(20 + dice_.Below(40)));
        break;
      case 3:
        ReconcileTwice();
        break;
      case 4:
        node_.Restart();
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

  /// P8, P17: whatever was before, also advice, sizes are in the end what SizePools makes of the
  /// present containers.
  void Converge() {
    // The first pass finds unneeded CPUs, the others come when these may go, step by step.
    const int cpus = node_.machine().cpu_set().Count();
    int left = cpus + 2;
    std::string before;
    for (std::string now = Exported(); before != now || left > cpus; --left) {
      ASSERT_GT(left, 0) << "it never comes to rest";
      node_.clock().Advance(std::chrono::seconds(30));
      ReconcileOnce();
      before = std::exchange(now, Exported());
    }
    const PoolSizes want = WantedSizes(node_);
    for (const auto& [name, pool] : node_.Pools()) {
      if (want.contains(name)) {
        ASSERT_EQ(pool.Count(), want.at(name)) << "pool " << name;
      }
    }
  }

  /// P11: once more at rest, a container that came and went leaves the sizes as they were, and
  /// pools that it did not change have their CPUs still.
  void ComeAndGo() {
    const PoolMap before = node_.Pools();
    const std::string pod = fmt::format("pod{}", pods_);
    ASSERT_NO_FATAL_FAILURE(Admit(DrawRequest(), Exported()));
    ASSERT_NO_FATAL_FAILURE(Converge());
    const PoolMap meanwhile = node_.Pools();
    node_.drive().RemovePod(pod);
    ASSERT_NO_FATAL_FAILURE(Converge());
    for (const auto& [name, cpus] : node_.Pools()) {
      ASSERT_EQ(cpus.Count(), before.at(name).Count()) << name;
      if (node_.config().pools.contains(name) && meanwhile.at(name) == before.at(name)) {
        ASSERT_EQ(ToString(cpus), ToString(before.at(name))) << name;
      }
    }
  }

  const DrivenNode& node() const { return node_; }
  const std::string& text() const { return text_; }
  int admitted() const { return admitted_; }
  std::string Exported() const { return node_.Exported(); }

 protected:
  Dice& dice() { return dice_; }

 private:
  /// Random advice from outside.
  virtual void Advise() {}

  static constexpr const char* kRoles[] = {"a", "b", "c", "own", ""};

  ContainerRequest DrawRequest() {
    const std::string role = kRoles[dice_.Below(5)];
    const double cpus = role == "own" ? 1 + dice_.Below(4) : dice_.Below(80) / 10.0;
    return test::Request(fmt::format("pod{}", pods_), role, "cpu", cpus);
  }

  /// P13.
  void ReloadAnotherRule(const std::string& before) {
    node_.Reload(
        text_ + fmt::format("rules: [{{select: {{role: late{}}}, grant: own}}]\n", dice_.Below(9)));
    ASSERT_EQ(Exported(), before) << "an unused rule moved a container";
  }

  /// P13: when keys of one pool change its size, the others move only as far as their sizes follow.
  void ReloadOnePool() {
    const PoolMap before = node_.Pools();
    const std::string pool(1, static_cast<char>('a' + dice_.Below(3)));
    const std::size_t line = text_.find(fmt::format("  {}: {{size", pool));
    for (const char* key : {"priority: ", "weight: "}) {
      text_[text_.find(key, line) + std::strlen(key)] = static_cast<char>('1' + dice_.Below(3));
    }
    node_.Reload(text_);
    for (const auto& [name, cpus] : node_.Pools()) {
      ASSERT_TRUE(!node_.config().pools.contains(name) || cpus.Count() != before.at(name).Count() ||
                  cpus == before.at(name))
          << "a reload of pool " << pool << " moved pool " << name << " from "
          << ToString(before.at(name)) << " to " << ToString(cpus);
    }
  }

  /// P22: what fitted before fits when a container is gone, unless that serves others that lacked
  /// some.
  void RemoveOne() {
    const ContainerRequest next = DrawRequest();
    const bool fitted = node_.Fits(next) && !SomebodyLacks(node_);
    node_.drive().RemovePod(fmt::format("pod{}", dice_.Below(pods_ + 1)));
    ASSERT_TRUE(!fitted || node_.Fits(next))
        << next.quantity() << " CPUs for role " << next.pod_role
        << " fitted while there were more containers";
  }

  /// P22, too.
  void TakeCpusOffOrOn() {
    const CpuSet offline = DrawOffline(dice_, node_.machine());
    ASSERT_NO_FATAL_FAILURE(ReconcileOnce());  // pools follow advice by now, and not again at once
    const ContainerRequest next = DrawRequest();
    const bool fitted =
        offline.IsSubsetOf(node_.offline()) && node_.Fits(next) && !SomebodyLacks(node_);
    node_.SetOffline(offline);
    moved_freely_ = true;
    ReconcileOnce();
    ASSERT_TRUE(!fitted || node_.Fits(next))
        << next.quantity() << " CPUs for role " << next.pod_role
        << " fitted while fewer CPUs were online";
  }

  /// P16: what pools have just given up is exclusive at once only as the last resort.
  void AskForWhatPoolsGaveUp() {
    node_.clock().Advance(std::chrono::seconds(40));
    ASSERT_NO_FATAL_FAILURE(ReconcileOnce());
    const auto cpus = static_cast<double>(1 + dice_.Below(node_.machine().cpu_set().Count()));
    Admit(test::Request(fmt::format("pod{}", pods_), "own", "cpu", cpus), Exported());
  }

  void Admit(const ContainerRequest& request, const std::string& before) {
    ++pods_;
    const StatusOr<HintList> hints = node_.drive().plugin().Hints(request);
    const auto given = node_.drive().Admit(request);
    // P19: the reason of a decision is always the same, and reported as it was.
    const StatusOr<Placement> by = Classify(node_.config(), request);
    ASSERT_TRUE(by.ok()) << by.status();
    ASSERT_EQ(Classify(node_.config(), request)->by, by->by);
    if (given.ok()) {
      ++admitted_;
      ASSERT_EQ(given->decided_by, by->by);
      moved_freely_ = moved_freely_ || TookOfPools(*given);
      return;
    }
    ASSERT_FALSE(hints.ok() && !hints->IsImpossible())
        << "a hint that was offered does not hold: " << given.status();
    ASSERT_EQ(Exported(), before) << "a rejected container changed something";
  }

  /// Then pools that want more than what is requested take other CPUs for it.
  bool TookOfPools(const ResourceAllocation& given) const {
    const CpuSet cpus = *CpuSet::Parse(given.value);
    return given.exclusive && std::any_of(pools_.begin(), pools_.end(), [&](const auto& pool) {
             return node_.config().pools.contains(pool.first) && pool.second.Intersects(cpus);
           });
  }

  /// P7: a plan of what was planned moves nothing.
  void ReconcileTwice() {
    ASSERT_NO_FATAL_FAILURE(ReconcileOnce());
    const std::string planned = Exported();
    ASSERT_NO_FATAL_FAILURE(ReconcileOnce());
    ASSERT_EQ(Exported(), planned);
  }

  /// P10, P15: a container that grows keeps its CPUs, also when that is rejected.
  void ResizeOne(const std::string& before) {
    if (node_.grants().empty()) {
      return;
    }
    const auto grant =
        std::next(node_.grants().begin(), dice_.Below(static_cast<int>(node_.grants().size())));
    const ResourceAllocation had = grant->second.allocation;
    const std::string pod = grant->second.request.pod_name;
    const double cpus = had.quantity + 1 + dice_.Below(6);
    const auto given =
        node_.drive().Admit(test::Request(pod, grant->second.request.pod_role, "cpu", cpus));
    if (!given.ok()) {
      ASSERT_EQ(Exported(), before) << "a rejected resize changed something";
      return;
    }
    moved_freely_ = TookOfPools(*given);
    ASSERT_EQ(given->exclusive, had.exclusive);
    const CpuSet now = *CpuSet::Parse(given->value);
    const CpuSet then = *CpuSet::Parse(had.value);
    ASSERT_TRUE(!had.exclusive || then.IsSubsetOf(now)) << had.value << " became " << given->value;
  }

  /// What the previous run reported is in the kernel by now; what this run reports is not yet.
  void ReconcileOnce() {
    applied_.clear();
    for (const auto& [key, grant] : node_.grants()) {
      applied_[key] = *CpuSet::Parse(grant.allocation->value);
    }
    node_.drive().Reconcile();
    lately_used_ = std::exchange(used_since_, {});
    NoteUsed();
    const PoolMap pools = node_.Pools();
    const PoolMap borrowed = node_.Borrowed();
    for (const auto& [key, grant] : node_.grants()) {
      const std::string pool = PoolOf(grant.request);
      if (!grant.allocation->exclusive && !pools.at(pool).Empty()) {
        ASSERT_EQ(grant.allocation->value, ToString(pools.at(pool) | borrowed.at(pool)))
            << key.pod_uid;
      }
    }
  }

  void NoteUsed() {
    for (const PoolMap& pools : {node_.Pools(), node_.Borrowed()}) {
      for (const auto& [name, cpus] : pools) {
        used_since_[name] |= cpus;
      }
    }
  }

  void Check() {
    NoteUsed();
    ASSERT_NO_FATAL_FAILURE(CheckOwners(node_));
    ASSERT_NO_FATAL_FAILURE(CheckBorrowed(node_));
    ASSERT_NO_FATAL_FAILURE(CheckKept(node_));
    ASSERT_NO_FATAL_FAILURE(CheckCpusets());
    ASSERT_NO_FATAL_FAILURE(CheckMoves());
    pools_ = node_.Pools();
  }

  /// P2, P4, P16: no container has another's exclusive CPU, also not one that the runtime has yet
  /// to change. Only what its pool had or borrowed since the reconcile before the last may be late:
  /// the manager has containers leave that before the owner starts.
  void CheckCpusets() {
    const CpuSet owned = node_.Exclusive();
    const PoolMap pools = node_.Pools();
    PoolSizes wanted = WantedSizes(node_);
    for (const auto& [key, grant] : node_.grants()) {
      const std::string pool = PoolOf(grant.request);
      if (grant.allocation->exclusive || !node_.config().pools.contains(pool)) {
        continue;
      }
      ASSERT_TRUE(!(pools.at(pool) - node_.offline()).Empty() || wanted[pool] == 0)
          << "pool " << pool;
      const auto applied = applied_.find(key);
      const CpuSet used = *CpuSet::Parse(grant.allocation->value) |
                          (applied == applied_.end() ? CpuSet() : applied->second);
      const CpuSet wrong = (used & owned) - used_since_[pool] - lately_used_[pool];
      ASSERT_TRUE(wrong.Empty()) << key.pod_uid << " uses " << ToString(wrong)
                                 << ", which others own";
    }
  }

  /// P12, P15: a pool that grows keeps its CPUs, and a pool that shrinks keeps a part of them.
  void CheckMoves() {
    for (const auto& [name, cpus] : node_.Pools()) {
      const CpuSet& before = pools_.at(name);
      ASSERT_TRUE(moved_freely_ || !node_.config().pools.contains(name) ||
                  before.IsSubsetOf(cpus) || cpus.IsSubsetOf(before))
          << "pool " << name << " moved from " << ToString(before) << " to " << ToString(cpus);
    }
  }

  Dice dice_;
  DrivenNode node_;
  std::string text_;
  PoolMap pools_;
  std::map<ContainerKey, CpuSet> applied_;  ///< the runtime's values at the last reconcile
  PoolMap used_since_;                      ///< CPUs of pools, borrowed ones too, since then
  PoolMap lately_used_;                     ///< and between that one and the one before
  bool moved_freely_ = false;
  int pods_ = 0;
  int admitted_ = 0;
};

}  // namespace qrm::cpu
