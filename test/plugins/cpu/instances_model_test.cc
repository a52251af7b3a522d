// Random histories of pools with several instances for a group, beside pools by NUMA node and
// owners. QRM_POOL_HISTORIES=1700 plays a hundred thousand steps.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plugins/cpu/config/classify.h"
#include "test/plugins/cpu/drawn_node.h"
#include "test/plugins/cpu/driven_node.h"
#include "test/plugins/cpu/pool_invariants.h"

namespace qrm::cpu::instances_model_test {
namespace {

constexpr int kMilli = 1000;

std::string DrawInstances(Dice& dice, int cpus) {
  constexpr const char* kBy[] = {"all", "namespace", "pod"};
  constexpr const char* kWhenFull[] = {"another", "any"};
  constexpr const char* kThreads[] = {"all", "spread"};
  const int min = 1 + (cpus >= 6 ? dice.Below(2) : 0);
  return fmt::format(
      "reserved-cpus: 0\n"
      "roles: {{own: {{numa: any, share-numa-with: [\"*\"]}}}}\n"
      "pools:\n"
      "  i: {{size: {{min: {}, max: {}}}, roles: [i], place: {{threads: {}}},\n"
      "      instances: {{by: {}, when-full: {}, min: {}}}{}}}\n"
      "  n: {{size: {{}}, roles: [n], instances: {{by: numa-node}}, borrow: {{idle: numa}}}}\n"
      "  default: {{size: {{min: 1}}}}\n",
      min, min + dice.Below(5), kThreads[dice.Below(2)], kBy[dice.Below(3)],
      kWhenFull[dice.Below(2)], cpus >= 12 ? dice.Below(3) : 0,
      dice.OneIn(2) ? ", lend: {to: [n], keep: 1}" : "");
}

class History {
 public:
  explicit History(unsigned seed) : dice_(seed), node_(DrawMachine(dice_), Tuned::kNo) {
    text_ = DrawInstances(dice_, node_.machine().cpu_set().Count());
    node_.Start(text_);
  }

  void Step() {
    switch (dice_.Below(10)) {
      case 0:
      case 1:
      case 2:
        node_.drive().RemovePod(fmt::format("pod{}", dice_.Below(pods_ + 1)));
        break;
      case 3:
        node_.clock().Advance(std::chrono::seconds(20 + dice_.Below(40)));
        node_.drive().Reconcile();
        break;
      case 4: {
        const std::string before = node_.Exported();
        node_.Restart();
        ASSERT_EQ(node_.Exported(), before) << "a restart moved something";
        break;
      }
      case 5:
        ResizeOne();
        break;
      default:
        Admit(DrawRequest());
    }
    node_.drive().Reconcile();
    ASSERT_NO_FATAL_FAILURE(CheckOwners(node_));
    ASSERT_NO_FATAL_FAILURE(CheckInstances());
    ASSERT_NO_FATAL_FAILURE(CheckCpusets());
  }

  const std::string& text() const { return text_; }
  int admitted() const { return admitted_; }
  int shared() const { return shared_; }

 private:
  ContainerRequest DrawRequest() {
    constexpr const char* kRoles[] = {"i", "i", "i", "n", "own"};
    const std::string role = kRoles[dice_.Below(5)];
    const double cpus = role == "own" ? 1 + dice_.Below(3) : dice_.Below(50) / 10.0;
    ContainerRequest request = test::Request(fmt::format("pod{}", pods_), role, "cpu", cpus);
    request.pod_namespace = fmt::format("ns{}", dice_.Below(3));
    request.key.container = fmt::format("c{}", dice_.Below(2));
    pods_ += dice_.OneIn(3) ? 0 : 1;
    return request;
  }

  std::string InstanceOf(const sdk::Grant& grant) const {
    return grant.allocation->shares_of.empty() ? Classify(node_.config(), grant.request)->pool
                                               : grant.allocation->shares_of;
  }
  /// What containers request of each instance of the pool i.
  std::map<std::string, int64_t> Requested() const {
    std::map<std::string, int64_t> requested;
    for (const auto& [key, grant] : node_.grants()) {
      if (grant.request.pod_role == "i") {
        requested[InstanceOf(grant)] += std::llround(grant.request.quantity() * kMilli);
      }
    }
    return requested;
  }

  void Admit(const ContainerRequest& request) {
    const auto former = node_.grants().find(request.key);
    if (former != node_.grants().end() && former->second.request.pod_role != request.pod_role) {
      return;  // a pod keeps its role
    }
    const PoolMap pools = node_.Pools();
    const auto requested = Requested();
    const bool is_new = former == node_.grants().end();
    const auto given = node_.drive().Admit(request);
    if (given.ok()) {
      ++admitted_;
      const std::string& pool = given->shares_of;
      shared_ += !pool.empty() && FirstInstance(pool) == pool && pool.starts_with("i/") ? 1 : 0;
      return;
    }
    const auto& rule = node_.config().pools.at("i").instances;
    if (request.pod_role != "i" || !is_new || !rule.has_value() ||
        rule->when_full != InstanceRule::WhenFull::kAny) {
      return;
    }
    for (const auto& [instance, milli] : requested) {
      ASSERT_GT(milli + std::llround(request.quantity() * kMilli),
                int64_t{kMilli} * pools.at(instance).Count())
          << instance << " has room, but: " << given.status();
    }
  }

  void ResizeOne() {
    if (node_.grants().empty()) {
      return;
    }
    const auto grant =
        std::next(node_.grants().begin(), dice_.Below(static_cast<int>(node_.grants().size())));
    ContainerRequest request = grant->second.request;
    request.requests.Edit()["cpu"] =
        request.pod_role == "own" ? 1 + dice_.Below(4) : dice_.Below(50) / 10.0;
    Admit(request);
  }

  /// No instance has more requests than CPUs, and as many exist as must without containers.
  void CheckInstances() {
    const PoolMap pools = node_.Pools();
    for (const auto& [instance, milli] : Requested()) {
      ASSERT_LE(milli, int64_t{kMilli} * pools.at(instance).Count()) << instance;
    }
    const PoolConfig& pool = node_.config().pools.at("i");
    if (!pool.size.has_value() || !pool.instances.has_value()) {
      FAIL() << "pool i has no instances";
    }
    int ready = 0;
    for (const auto& [name, cpus] : pools) {
      ready += ConfiguredName(name) == "i" && cpus.Count() >= pool.size->min ? 1 : 0;
    }
    ASSERT_GE(ready, pool.instances->min);
  }

  void CheckCpusets() {
    const CpuSet owned = node_.Exclusive();
    for (const auto& [key, grant] : node_.grants()) {
      const CpuSet uses = *CpuSet::Parse(grant.allocation->value);
      ASSERT_TRUE(grant.allocation->exclusive || !uses.Intersects(owned)) << key.pod_uid;
      if (grant.request.pod_role == "n" && node_.config().pools.at("i").lend.to.empty()) {
        ASSERT_EQ(node_.machine().NodesOf(uses).Count(), 1) << key.pod_uid;
      }
    }
  }

  Dice dice_;
  DrivenNode node_;
  std::string text_;
  int pods_ = 0;
  int admitted_ = 0;
  int shared_ = 0;
};

TEST(InstancesModelTest, RandomHistoriesOverbookNoInstance) {
  const int histories = Histories();
  int admitted = 0;
  int shared = 0;
  for (int seed = 1; seed <= histories; ++seed) {
    History history(static_cast<unsigned>(seed));
    for (int step = 0; step < 60; ++step) {
      ASSERT_NO_FATAL_FAILURE(history.Step()) << "seed " << seed << ", step " << step << " of\n"
                                              << history.text();
    }
    admitted += history.admitted();
    shared += history.shared();
  }
  EXPECT_GT(admitted, 8 * histories);
  EXPECT_GT(shared, 0) << "containers in instances of other groups";
}

}  // namespace
}  // namespace qrm::cpu::instances_model_test
