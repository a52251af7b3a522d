// Random histories of pools with places and instances on random machines, some with two kinds of
// cores, checked against the documented rules. QRM_POOL_HISTORIES=17000 plays a million steps.
#include <chrono>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/place.h"
#include "plugins/cpu/pool_asks.h"
#include "test/plugins/cpu/drawn_node.h"
#include "test/plugins/cpu/driven_node.h"
#include "test/plugins/cpu/pool_invariants.h"

namespace qrm::cpu::place_model_test {
namespace {

constexpr const char* kRoles[] = {"a", "b", "c", "own", ""};

/// Half of the machines have efficient cores behind the others.
MachineParts DrawKinds(Dice& dice) {
  MachineParts parts = DrawMachine(dice);
  if (dice.OneIn(2)) {
    for (Cpu& cpu : parts.cpus) {
      cpu.core_kind = cpu.core < static_cast<int>(parts.cpus.size()) / 2 ? 1 : 0;
    }
  }
  return parts;
}

std::string DrawPlace(Dice& dice, const char* other) {
  constexpr const char* kNodes[] = {"any", "one", "fewest", "even"};
  constexpr const char* kKinds[] = {"any", "performance", "efficient"};
  constexpr const char* kThreads[] = {"all", "whole-cores", "one-per-core"};
  const int node = dice.Below(4);
  const int kind = dice.Below(3);
  std::string required;
  required += node == 1 && dice.OneIn(2) ? "numa," : "";
  required += kind != 0 && dice.OneIn(2) ? "core," : "";
  return fmt::format(", place: {{numa: {}, core: {}, threads: {}, align-l3: {}, require: [{}]{}}}",
                     kNodes[node], kKinds[kind], kThreads[dice.Below(3)], dice.OneIn(2), required,
                     dice.OneIn(3) ? fmt::format(", avoid: {{share: l3, with: {}}}", other) : "");
}

std::string DrawInstances(Dice& dice) {
  constexpr const char* kBy[] = {"pod", "container", "namespace", "label:team"};
  return dice.OneIn(2)
             ? fmt::format(", instances: {{by: \"{}\", max: {}, fill: {}}}", kBy[dice.Below(4)],
                           1 + dice.Below(3), dice.OneIn(2) ? "packed" : "balanced")
             : "";
}

std::string DrawPlaces(Dice& dice, int cpus) {
  std::string text = "roles: {own: {numa: any, share-numa-with: [\"*\"]}}\n";
  text += dice.OneIn(2) ? "on-full: default-pool\n" : "";
  text += "pools:\n";
  for (const auto& [pool, next] : {std::pair("a", "b"), std::pair("b", "c"), std::pair("c", "a")}) {
    text += fmt::format("  {}: {{size: {{max: {}, step: {}}}, priority: {}, roles: [{}]{}{}}}\n",
                        pool, 1 + dice.Below(cpus), dice.Below(3), dice.Below(2), pool,
                        DrawPlace(dice, next), DrawInstances(dice));
  }
  return dice.OneIn(2) ? text + "  default: {size: {min: 1}}\n" : text;
}

class History {
 public:
  explicit History(unsigned seed)
      : dice_(seed),
        node_(DrawKinds(dice_), Tuned::kNo),
        text_(DrawPlaces(dice_, node_.machine().cpu_set().Count())) {
    node_.Start(text_);
  }

  const std::string& text() const { return text_; }
  int admitted() const { return admitted_; }

  void Step() {
    const std::string before = node_.Exported();
    switch (dice_.Below(9)) {
      case 0:
      case 1:
        RemoveOne();
        break;
      case 2:
        node_.clock().Advance(std::chrono::seconds(20 + dice_.Below(40)));
        node_.drive().Reconcile();
        break;
      case 3:
        node_.Restart();
        ASSERT_EQ(node_.Exported(), before) << "a restart moved something";
        break;
      case 4:
        node_.SetOffline(DrawOffline(dice_, node_.machine()));
        node_.drive().Reconcile();
        break;
      default:
        AdmitOne(before);
    }
    Check();
  }

  /// Planning again changes nothing once nothing is to shrink.
  void Converge() {
    for (int left = 2 * node_.machine().cpu_set().Count() + 4; left > 0; --left) {
      node_.clock().Advance(std::chrono::seconds(31));
      node_.drive().Reconcile();
    }
    const std::string rest = node_.Exported();
    node_.clock().Advance(std::chrono::seconds(31));
    node_.drive().Reconcile();
    ASSERT_EQ(node_.Exported(), rest);
    Check();
  }

 private:
  ContainerRequest DrawRequest() {
    const std::string role = kRoles[dice_.Below(5)];
    const double cpus = role == "own" ? 1 + dice_.Below(3) : dice_.Below(60) / 10.0;
    ContainerRequest request = test::Request(fmt::format("pod{}", pods_), role, "cpu", cpus);
    request.pod_namespace = fmt::format("ns{}", dice_.Below(3));
    request.labels.Edit()["team"] = fmt::format("t{}", dice_.Below(3));
    return request;
  }

  /// P22: what fitted before fits when a container is gone; exclusive CPUs fit once others have
  /// left what they gave up, and unless idle CPUs went to a pool that had asked for more. While
  /// threads are offline, whole cores are of several sizes: the remaining containers may take
  /// others then.
  void RemoveOne() {
    const ContainerRequest next = DrawRequest();
    const bool fitted = node_.Fits(next) && (node_.offline().Empty() || !WantsWholeCores(next));
    const CpuSet idle = Idle();
    node_.drive().RemovePod(fmt::format("pod{}", dice_.Below(pods_ + 1)));
    bool taken = false;
    if (next.pod_role == "own") {
      taken = idle.Intersects(InPools());
      node_.drive().Reconcile();
      node_.drive().Reconcile();
    }
    ASSERT_TRUE(!fitted || taken || node_.Fits(next))
        << next.quantity() << " CPUs for role " << next.pod_role
        << " fitted while there were more containers";
  }

  bool WantsWholeCores(const ContainerRequest& request) const {
    const auto pool = node_.config().pools.find(request.pod_role);
    return pool != node_.config().pools.end() && pool->second.place.OwnsWholeCores();
  }

  /// CPUs of pools in the configuration; CPUs of other pools are idle, or in the default pool.
  CpuSet InPools() const {
    CpuSet cpus;
    for (const sdk::Pool& pool : node_.PoolList()) {
      cpus |= FindPool(node_.config(), pool.name) != nullptr ? pool.cpus : CpuSet();
    }
    return cpus;
  }
  CpuSet Idle() const { return node_.machine().cpu_set() - InPools() - node_.Exclusive(); }

  void AdmitOne(const std::string& before) {
    const ContainerRequest request = DrawRequest();
    ++pods_;
    const StatusOr<HintList> hints = node_.drive().plugin().Hints(request);
    if (hints.ok() && !hints->hints().empty()) {
      const TopologyHint& hint = dice_.OneOf(hints->hints());
      const auto given = node_.drive().plugin().Allocate(request, hint);
      ASSERT_TRUE(given.ok()) << "a hint that was offered does not hold: " << given.status();
      node_.drive().Keep(request, given);
      ++admitted_;
      return;
    }
    const auto given = node_.drive().Admit(request);
    if (given.ok()) {
      ++admitted_;
      return;
    }
    ASSERT_FALSE(hints.ok() && !hints->IsImpossible())
        << "a hint that was offered does not hold: " << given.status();
    ASSERT_EQ(node_.Exported(), before) << "a rejected container changed something";
  }

  void Check() {
    ASSERT_NO_FATAL_FAILURE(CheckOwners(node_));
    for (const sdk::Pool& pool : node_.PoolList()) {
      ASSERT_TRUE(pool.containers == 0 || !pool.cpus.Empty() || !HasEnough()) << pool.name;
      if (const PoolConfig* const config = FindPool(node_.config(), pool.name); config != nullptr) {
        ASSERT_NO_FATAL_FAILURE(CheckPlace(pool, *config));
      }
    }
  }

  /// Whether as many CPUs are online as pools with containers and a default pool must have.
  bool HasEnough() const {
    int left = (node_.machine().cpu_set() - node_.offline() - node_.Exclusive()).Count();
    for (const sdk::Pool& pool : node_.PoolList()) {
      const PoolConfig* const config = FindPool(node_.config(), pool.name);
      if (config == nullptr) {
        --left;
      } else if (pool.containers > 0) {
        left -= LeastInUse(node_.machine(), *config);
      }
    }
    return left >= 0;
  }

  void CheckPlace(const sdk::Pool& pool, const PoolConfig& config) {
    const Machine& machine = node_.machine();
    const PlaceRule& rule = config.place;
    if (rule.numa_required) {
      ASSERT_LE(machine.NodesOf(pool.cpus).Count(), 1) << pool.name;
    }
    if (rule.core_required) {
      ASSERT_TRUE(pool.cpus.IsSubsetOf(CpusOfKind(machine, rule.core))) << pool.name;
    }
    if (rule.OwnsWholeCores()) {
      // Only where no whole core is available may it have a part of one.
      const CpuSet whole = machine.WholeCores(pool.cpus, node_.offline());
      ASSERT_TRUE(whole == pool.cpus ||
                  (whole.Empty() && pool.cpus.Count() <= ThreadsPerCore(machine, pool.cpus)))
          << pool.name << " has parts of cores: " << ToString(pool.cpus) << " while "
          << ToString(node_.offline()) << " are offline";
    }
  }

  Dice dice_;
  DrivenNode node_;
  std::string text_;
  int pods_ = 0;
  int admitted_ = 0;
};

TEST(PlaceModelTest, RandomHistoriesKeepThePromisesOfAllocations) {
  const int histories = Histories();
  int admitted = 0;
  for (int seed = 1; seed <= histories; ++seed) {
    History history(static_cast<unsigned>(seed));
    for (int step = 0; step < 60; ++step) {
      ASSERT_NO_FATAL_FAILURE(history.Step()) << "seed " << seed << ", step " << step << "\n"
                                              << history.text();
    }
    ASSERT_NO_FATAL_FAILURE(history.Converge()) << "seed " << seed << "\n" << history.text();
    admitted += history.admitted();
  }
  EXPECT_GT(admitted, 8 * histories);
}

}  // namespace
}  // namespace qrm::cpu::place_model_test
