// Running containers when the cpu plugin gets another configuration, without a restart.
#include <array>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plugins/sdk/plugin_driver.h"
#include "plugins/sdk/plugin_state.h"
#include "test/plugins/cpu/made_plugin.h"

namespace qrm::cpu::cpu_reload_test {
namespace {

using test::Request;
using Values = std::map<ContainerKey, std::string>;

/// A plugin of `text` with the grants of its containers.
class Running {
 public:
  explicit Running(const std::string& text, sdk::StoredState begin = {})
      : plugin_(Make(text)), driver_(*plugin_, kResource, sdk::MakeMemoryState(std::move(begin))) {
    EXPECT_TRUE(driver_.Start().ok());
  }

  /// The value it gets; empty when it is rejected.
  std::string Admit(ContainerRequest request) {
    const StatusOr<HintList> hints = driver_.Hints(request);
    if (!hints.ok() || hints->IsImpossible()) {
      return "";
    }
    request.hint = hints->hints().empty() ? TopologyHint() : hints->hints().front();
    const auto given = driver_.Allocate(request);
    return given.ok() ? (*given)->value : "";
  }
  void Reload(const std::string& text) {
    auto next = Make(text);
    ASSERT_TRUE(driver_.Prepare(*next).ok());
    driver_.Replace(std::move(next));
  }
  void Reconcile() { ASSERT_TRUE(driver_.Reconcile().ok()); }
  Values Now() const {
    Values values;
    for (const auto& [key, grant] : driver_.grants()) {
      values[key] = grant.allocation->value;
    }
    return values;
  }
  /// The state that a restart would load.
  sdk::StoredState Stored() {
    return {.grants = driver_.grants(),
            .saved = driver_
                         .Ask("SaveState",
                              [](const sdk::ResourcePlugin& plugin) {
                                return StatusOr<std::string>(plugin.SaveState());
                              })
                         .value_or("")};
  }

 private:
  std::unique_ptr<sdk::ResourcePlugin> plugin_;
  sdk::PluginDriver driver_;
};

TEST(CpuReloadTest, RoleThatIsAddedCountsForTheNextContainer) {
  Running running("pools: {web: {cpus: \"60-69\", roles: [web]}}");
  ASSERT_EQ(running.Admit(Request("web", "web", "cpu", 1)), "60-69");
  const std::string shared = running.Admit(Request("old", "db", "cpu", 2));
  running.Reload("roles: {db: {}}\npools: {web: {cpus: \"60-69\", roles: [web]}}");
  running.Reconcile();
  EXPECT_EQ(running.Now().at({"web-uid", "c0"}), "60-69");
  EXPECT_EQ(running.Now().at({"old-uid", "c0"}), shared);
  EXPECT_EQ(CpuSet::Parse(running.Admit(Request("new", "db", "cpu", 2)))->Count(), 2);
}

TEST(CpuReloadTest, PoolKeepsTheSizeThatWasSetByHandWhileItsKeysStay) {
  Running resized("pools: {web: {cpus: \"60-69\", roles: [web]}, old: {cpus: \"50\"}}",
                  {.saved = R"({"pools": {"web": {"cpus": "70-79", "configured": "60-69"}}})"});
  resized.Reload("pools: {web: {cpus: \"60-69\", roles: [web]}, new: {cpus: \"51\"}}");
  EXPECT_EQ(resized.Admit(Request("web", "web", "cpu", 1)), "70-79");
}

TEST(CpuReloadTest, CpusThatAPoolLostAreNotExclusiveBeforeItsContainersHaveLeftThem) {
  const std::string rest = "reserved-cpus: \"4-79\"\nroles: {db: {}}\n";
  Running running(rest + "default-pool: web\npools: {web: {cpus: \"0-3\"}}");
  ASSERT_EQ(running.Admit(Request("web", "", "cpu", 1)), "0-3");
  running.Reload(rest + "default-pool: web\npools: {web: {cpus: \"0-1\"}}");
  EXPECT_EQ(running.Admit(Request("early", "db", "cpu", 2)), "");
  running.Reconcile();  // the container is made to leave
  running.Reconcile();  // and has left
  EXPECT_EQ(running.Admit(Request("later", "db", "cpu", 2)), "2-3");
}

TEST(CpuReloadTest, ContainerBesideAPoolLeavesLostCpusBeforeTheyBecomeExclusive) {
  const auto text = [](const std::string& web) {
    return "reserved-cpus: \"6-79\"\nroles: {db: {share-numa-with: [\"*\"]}}\n"
           "grants: {data: {plus: web, share-numa-with: [\"*\"]}}\n"
           "rules: [{select: {role: data}, grant: data}]\n"
           "pools: {web: {cpus: \"" +
           web + "\"}}\n";
  };
  Running running(text("0-3"));
  const std::string own = running.Admit(Request("data", "data", "cpu", 1.5));
  const auto shares = [&] {
    return running.Stored().grants.at({"data-uid", "c0"}).allocation->shares;
  };
  ASSERT_EQ(shares(), "0-3");
  running.Reload(text("0-1"));
  EXPECT_EQ(running.Admit(Request("early", "db", "cpu", 2)), "");
  running.Reconcile();
  EXPECT_EQ(shares(), "0-1");
  EXPECT_EQ(running.Now().at({"data-uid", "c0"}), own);
  running.Reconcile();
  EXPECT_EQ(running.Admit(Request("later", "db", "cpu", 2)), "2-3");
}

/// Random pools and roles, each of which may be missing or different.
class RandomConfig {
 public:
  explicit RandomConfig(std::mt19937& random) {
    static constexpr std::array<std::array<const char*, 3>, 3> kPools = {
        {{"", "a: {cpus: \"0-3\", roles: [a]}", "a: {cpus: \"0-7\", roles: [a]}"},
         {"", "b: {cpus: \"8-11,48\", roles: [b]}", "b: {cpus: \"10-15\", roles: [b]}"},
         {"", "c: {size: {max: 6}, roles: [c]}", "c: {size: {min: 2, max: 9}, roles: [c]}"}}};
    for (std::size_t i = 0; i < kPools.size(); ++i) {
      pools[i] = kPools.at(i).at(random() % 3);
      text += pools[i].empty() ? "" : pools[i] + ", ";
    }
    text = "pools: {" + text + "}\nroles: {" + (random() % 2 == 0 ? "r: {}" : "") + "}\n";
  }

  std::array<std::string, 3> pools;
  std::string text;
};

void ReloadLikeARestart(unsigned seed) {
  std::mt19937 random(seed);
  const RandomConfig before(random);
  const RandomConfig after(random);
  Running running(before.text);
  const std::array<std::string, 5> roles = {"a", "b", "c", "r", "none"};
  for (int pod = 0; pod < 12; ++pod) {
    const std::string& role = roles.at(random() % roles.size());
    running.Admit(Request(fmt::format("{}{}", role, pod), role, "cpu",
                          static_cast<double>(1 + random() % 3)));
  }
  running.Reconcile();
  const Values had = running.Now();
  Running restarted(after.text, running.Stored());
  running.Reload(after.text);
  running.Reconcile();
  restarted.Reconcile();
  ASSERT_EQ(running.Now(), restarted.Now()) << before.text << after.text;
  for (const auto& [key, value] : running.Now()) {
    const bool of_same_pool = (key.pod_uid.str()[0] == 'a' && before.pools[0] == after.pools[0] &&
                               !before.pools[0].empty()) ||
                              (key.pod_uid.str()[0] == 'b' && before.pools[1] == after.pools[1] &&
                               !before.pools[1].empty());
    if (of_same_pool || before.text == after.text) {
      ASSERT_EQ(value, had.at(key)) << key.pod_uid << '\n' << before.text << after.text;
    }
  }
}

TEST(CpuReloadPropertyTest, GivesWhatARestartGivesAndMovesNoContainerOfAnUnchangedPool) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(ReloadLikeARestart(seed));
  }
}

}  // namespace
}  // namespace qrm::cpu::cpu_reload_test
