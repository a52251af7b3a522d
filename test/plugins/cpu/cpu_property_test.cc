// For any requests in any order, exclusive CPUs are never shared.
#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/base/section.h"
#include "plugins/cpu/cpu_plugin.h"
#include "test/plugins/example_machine.h"
#include "test/plugins/plugin_driver.h"

namespace qrm::cpu::cpu_property_test {
namespace {

using test::Drive;
using test::ExampleMachine;
using test::Request;

constexpr char kConfig[] = R"(
reserved-cpus: 0-1,40-41
pools:
  online: {cpus: "2-9", roles: [web]}
  offline: {cpus: "42-49", roles: [etl]}
roles:
  alone: {}
  social: {share-numa-with: [social]}
  wide: {numa: fewest, share-numa-with: ["*"]}
  even: {numa: even, whole-cores: true, share-numa-with: ["*"]}
)";
constexpr const char* kRoles[] = {"alone", "social", "wide", "even", "web", "etl", ""};

std::unique_ptr<sdk::ResourcePlugin> Make() {
  const StatusOr<config::Section> section = config::Section::Parse(kConfig, "cpu.yaml");
  return *MakeCpuPlugin(*ParseCpuConfig(*section), ExampleMachine(2));
}

/// One random history of admissions, removals, resizes and restarts.
class History {
 public:
  explicit History(unsigned seed) : random_(seed), drive_(Make()) {}

  void Step() {
    switch (Below(8)) {
      case 0:
        drive_.RemovePod("pod" + std::to_string(Below(pods_ + 1)));
        break;
      case 1:
        Resize();
        break;
      case 2:
        drive_ = Drive(Make(), drive_);
        break;
      default:
        AdmitOne();
    }
    drive_.Reconcile();
  }

  void Check() {
    CpuSet owned;
    for (const auto& [key, grant] : drive_.grants()) {
      const CpuSet cpus = *CpuSet::Parse(grant.allocation->value);
      ASSERT_FALSE(cpus.Empty()) << grant.request.pod_name;
      if (!grant.allocation->exclusive) {
        continue;
      }
      ASSERT_FALSE(cpus.Intersects(owned)) << "CPUs " << ToString(cpus & owned) << " given twice";
      ASSERT_EQ(cpus.Count(), grant.request.quantity());
      owned |= cpus;
    }
    ASSERT_FALSE(owned.Intersects(CpuSet{0, 1, 40, 41})) << "reserved CPUs were given";
    for (const auto& [key, grant] : drive_.grants()) {
      const CpuSet cpus = *CpuSet::Parse(grant.allocation->value);
      ASSERT_TRUE(grant.allocation->exclusive || !cpus.Intersects(owned)) << grant.request.pod_name;
    }
    ASSERT_NO_FATAL_FAILURE(CheckLoners());
    for (const sdk::Pool& pool : drive_.plugin().Pools()) {
      ASSERT_FALSE(pool.cpus.Intersects(owned)) << pool.name;
      ASSERT_TRUE(pool.name != "default" || !pool.cpus.Empty());
    }
  }

  int admitted() const { return admitted_; }

 private:
  /// Role `alone` has its NUMA nodes to itself.
  void CheckLoners() {
    std::map<uint64_t, std::vector<std::string>> roles_by_node;
    for (const auto& [key, grant] : drive_.grants()) {
      for (const auto& [node, amount] : grant.allocation->amount_by_node) {
        if (grant.allocation->exclusive) {
          roles_by_node[node].push_back(grant.request.pod_role);
        }
      }
    }
    for (const auto& [node, roles] : roles_by_node) {
      const bool lonely = std::find(roles.begin(), roles.end(), "alone") != roles.end();
      ASSERT_TRUE(!lonely || roles.size() == 1) << "on node " << node;
    }
  }

  int Below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }

  void AdmitOne() {
    const std::string role = kRoles[Below(static_cast<int>(std::size(kRoles)))];
    const std::string pod = "pod" + std::to_string(pods_++);
    admitted_ += drive_.Admit(Request(pod, role, "cpu", 1 + Below(24))).ok() ? 1 : 0;
  }

  void Resize() {
    const int first = Below(80);
    const char* pool = Below(2) == 0 ? "online" : "offline";
    (void)drive_.plugin().SetPools({{pool, CpuSet::Range(first, first + Below(12))}});
  }

  std::mt19937 random_;
  Drive drive_;
  int pods_ = 0;
  int admitted_ = 0;
};

TEST(CpuHistoryTest, NeverSharesOwnedCpus) {
  for (unsigned seed = 1; seed <= 32; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    for (int step = 0; step < 200; ++step) {
      history.Step();
      ASSERT_NO_FATAL_FAILURE(history.Check()) << "step " << step;
    }
    EXPECT_GT(history.admitted(), 10);
  }
}

}  // namespace
}  // namespace qrm::cpu::cpu_property_test
