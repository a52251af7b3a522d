// Pools that use idle CPUs and CPUs of others: what they borrow, and who gets it back.
#include <chrono>
#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/cpu/pools.h"
#include "test/plugins/cpu/elastic_fixture.h"

namespace qrm::cpu::borrow_test {
namespace {

using test::Drive;
using test::Request;
using testing::HasSubstr;

/// 4 NUMA nodes of 4 CPUs, two in each package.
Machine FourNodes() {
  MachineParts parts;
  for (int cpu = 0; cpu < 16; ++cpu) {
    const int node = cpu / 4;
    parts.cpus.push_back(
        {.id = cpu, .core = cpu, .l3 = 4 * node, .node = node, .package = node / 2});
  }
  for (int node = 0; node < 4; ++node) {
    parts.nodes.push_back({.id = node, .package = node / 2});
  }
  return Machine(std::move(parts));
}

/// What pool a of `config` borrows on four nodes, with one container that has CPU 15 exclusively.
std::string BorrowedByA(const std::string& config, const CpuSet& offline = {}) {
  const CpuPluginConfig parsed = Config(config);
  const Machine machine = FourNodes();
  CpuState state = InitialState(parsed);
  state.pools[kDefaultPool] = {12};
  state.exclusive[{"pod", "main"}] = {.cpus = {15}};
  return ToString(Borrow({machine, parsed, state, nullptr, offline}, state.pools)["a"]);
}

struct SpanCase {
  std::string name;
  std::string idle;
  std::string want;
};
class BorrowSpanTest : public testing::TestWithParam<SpanCase> {};

TEST_P(BorrowSpanTest, FindsIdleCpusThere) {
  EXPECT_EQ(BorrowedByA("reserved-cpus: 0\npools: {a: {cpus: 1-2, borrow: {idle: " +
                        GetParam().idle + "}}, b: {cpus: 4}, default: {size: {fixed: 1}}}"),
            GetParam().want);
}

const SpanCase kSpans[] = {
    {"None", "none", ""},
    {"Numa", "numa", "3"},
    {"Package", "package", "3,5-7"},
    {"All", "all", "3,5-11,13-14"},
};
INSTANTIATE_TEST_SUITE_P(Spans, BorrowSpanTest, testing::ValuesIn(kSpans),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(BorrowTest, LeavesCpusThatAreOffline) {
  constexpr const char* kText =
      "pools: {a: {cpus: 0-1, borrow: {idle: numa}}, default: {size: {fixed: 1}}}";
  EXPECT_EQ(BorrowedByA(kText), "2-3");
  EXPECT_EQ(BorrowedByA(kText, {2}), "3");
}

TEST(BorrowTest, LenderKeepsTheCpusThatItsContainersUse) {
  const CpuPluginConfig config = Config(R"(
pools:
  a: {cpus: 0}
  b: {size: {fixed: 4}, lend: {to: a, keep: used}}
  default: {size: {fixed: 1}}
advisor: {use: true, pools: [b]}
)");
  const Machine machine = FourNodes();
  CpuState state = InitialState(config);
  state.pools["b"] = *CpuSet::Parse("4-7");
  View view{machine, config, state};
  const auto lent = [&](const PoolSizes& used) {
    view.used = &used;
    return ToString(Borrow(view, state.pools)["a"]);
  };
  EXPECT_EQ(lent({}), "4-7") << "it has no containers";
  state.shared[{"pod", "main"}] = {.pool = "b", .milli_cpus = 4000};
  EXPECT_EQ(lent({}), "") << "they are not measured yet";
  EXPECT_EQ(lent({{"b", 1}}), "5-7");
  EXPECT_EQ(lent({{"b", 3}}), "7");
  EXPECT_EQ(lent({{"b", 9}}), "");
}

TEST(BorrowTest, LenderKeepsSomeCpusAndLendsTheOthersInTheOrderOfGivingUp) {
  constexpr const char* kText =
      "pools: {{a: {{cpus: 0}}, b: {{cpus: 3-6, lend: {{to: a, keep: {}}}}}}}";
  EXPECT_EQ(BorrowedByA(fmt::format(kText, 0)), "3-6");
  EXPECT_EQ(BorrowedByA(fmt::format(kText, 3)), "3") << "its only one of node 0";
  EXPECT_EQ(BorrowedByA(fmt::format(kText, 3), {4}), "") << "three are online";
  EXPECT_EQ(BorrowedByA(fmt::format(kText, 9)), "");
}

TEST(BorrowTest, BorrowedCpusAreNotLentOn) {
  EXPECT_EQ(BorrowedByA("pools: {a: {cpus: 0}, b: {cpus: 1, lend: {to: a}},\n"
                        "        c: {cpus: 2-3, lend: {to: b}}}"),
            "1");
}

class BorrowingTest : public ElasticPlugins {
 protected:
  static CpuSet Uses(const Drive& drive, const std::string& pod) {
    return *CpuSet::Parse(drive.Value(pod));
  }
  static CpuSet Borrows(const Drive& drive, const std::string& name) {
    for (const sdk::Pool& pool : drive.plugin().Pools()) {
      if (pool.name == name) {
        return pool.borrowed;
      }
    }
    return {};
  }
};

/// The first worked example.
constexpr char kOnlineOffline[] = R"(
reserved-cpus: "0,32"
rules: [{select: {role: online}, pool: online}, {select: {role: offline}, pool: offline}]
roles: {db: {numa: any, share-numa-with: ["*"]}}
pools:
  online:  {size: {min: 8, max: 48}, priority: 1, borrow: {idle: numa}, lend: {to: [offline], keep: 8}}
  offline: {size: {min: 2}, borrow: {idle: all}, class: background}
  default: {size: {min: 2}}
classes: {background: {qos: {cpu-scheduling: idle}}}
)";

TEST_F(BorrowingTest, OfflineRunsOnWhatOnlineLeavesAndLends) {
  Drive drive = Start(kOnlineOffline);
  Admit(drive, "on", "online", 20);
  Admit(drive, "off", "offline", 30);
  EXPECT_EQ(Size(drive, "online"), 20);
  EXPECT_EQ(Size(drive, "offline"), 30);
  EXPECT_EQ(Size(drive, "default"), 2);
  EXPECT_EQ(Uses(drive, "off").Count(), 30 + 10 + 12);
  EXPECT_EQ((Uses(drive, "off") & Pool(drive, "online")).Count(), 12);
  EXPECT_FALSE(Uses(drive, "off").Intersects(Pool(drive, "default")));
  EXPECT_EQ(drive.Of("off").class_defaults, (StringMap{{"cpu-scheduling", "idle"}}));
  EXPECT_EQ(drive.Of("on").class_defaults, StringMap());

  Admit(drive, "more", "online", 40);
  drive.Reconcile();
  EXPECT_EQ(Size(drive, "online"), 48);
  EXPECT_EQ(Size(drive, "offline"), 12);
  EXPECT_EQ(Size(drive, "default"), 2);
  EXPECT_EQ(Uses(drive, "off").Count(), 12 + 40);
  EXPECT_EQ((Uses(drive, "off") & Pool(drive, "online")).Count(), 40);
}

TEST_F(BorrowingTest, PoolsDistinguishTheirCpusFromBorrowedOnes) {
  Drive drive = Start(kOnlineOffline);
  Admit(drive, "off", "offline", 6);
  EXPECT_EQ(Size(drive, "offline"), 6);
  EXPECT_FALSE(Borrows(drive, "offline").Intersects(Pool(drive, "offline")));
  EXPECT_EQ(Uses(drive, "off"), Pool(drive, "offline") | Borrows(drive, "offline"));
  EXPECT_THAT(drive.plugin().ExportState(drive.grants()),
              HasSubstr("\"offline\": \"" + ToString(Borrows(drive, "offline"))));
}

TEST_F(BorrowingTest, ExclusiveContainersTakeIdleCpusAndBorrowersLeaveThem) {
  Drive drive = Start(kOnlineOffline);
  Admit(drive, "off", "offline", 2);
  const CpuSet before = Uses(drive, "off");
  Admit(drive, "db", "db", 10);
  const CpuSet owned = Uses(drive, "db");
  EXPECT_TRUE(owned.IsSubsetOf(before)) << "all that was idle was borrowed";
  drive.Reconcile();
  EXPECT_EQ(Uses(drive, "off"), before - owned);
  drive.RemovePod("db");
  drive.Reconcile();
  EXPECT_EQ(Uses(drive, "off"), before);
}

TEST_F(BorrowingTest, AllContainersOfABorrowerFollowAPoolThatGrows) {
  Drive drive = Start(kOnlineOffline);
  Admit(drive, "off", "offline", 1);
  Admit(drive, "rest", "", 20);
  Admit(drive, "off2", "offline", 1);
  EXPECT_FALSE(Uses(drive, "off2").Intersects(Pool(drive, "default")));
  drive.Reconcile();
  EXPECT_EQ(Uses(drive, "off"), Uses(drive, "off2"));
}

TEST_F(BorrowingTest, BorrowersFollowALenderThatIsSet) {
  Drive drive = Start(
      "pools: {web: {cpus: 0-3, lend: {to: batch, keep: 1}}, batch: {cpus: 8, roles: [batch]}}");
  Admit(drive, "b", "batch", 1);
  EXPECT_EQ(drive.Value("b"), "1-3,8");
  ASSERT_TRUE(drive.plugin().SetPools({{"web", *CpuSet::Parse("4-5")}}).ok());
  drive.Reconcile();
  EXPECT_EQ(drive.Value("b"), "5,8");
}

TEST_F(BorrowingTest, NoContainerMovesAtARestart) {
  Drive before = Start(kOnlineOffline);
  Admit(before, "on", "online", 20);
  Admit(before, "off", "offline", 9);
  Admit(before, "db", "db", 3);
  before.Reconcile();
  Drive after = Restart(kOnlineOffline, before);
  EXPECT_EQ(after.plugin().ExportState({}), before.plugin().ExportState({}));
  after.Reconcile();
  for (const char* pod : {"on", "off", "db"}) {
    EXPECT_EQ(after.Value(pod), before.Value(pod)) << pod;
  }
}

TEST_F(BorrowingTest, OwnersAvoidFormerlyBorrowedCpusAfterARestartWhileOtherCpusAreIdle) {
  Drive before = Start(
      "roles: {db: {numa: any}}\n"
      "pools: {web: {size: {max: 60}, roles: [web], borrow: {idle: numa}}, default: {size: {min: "
      "2}}}");
  Admit(before, "web", "web", 2);
  const CpuSet used = Uses(before, "web");
  ASSERT_GT(used.Count(), 2);
  Drive drive = Restart(
      "roles: {db: {numa: any}}\n"
      "pools: {web: {size: {max: 60}, roles: [web]}, default: {size: {min: 2}}}",
      before);
  ASSERT_TRUE(drive.Admit(Request("db", "db", "cpu", 1)).ok());
  EXPECT_FALSE(used.Intersects(*CpuSet::Parse(drive.Value("db"))));
  drive.Reconcile();
  EXPECT_EQ(Uses(drive, "web").Count(), 2);
}

struct RefusedCase {
  std::string name;
  std::string text;
  std::string want;
};
class RejectedSharingTest : public testing::TestWithParam<RefusedCase> {};

TEST_P(RejectedSharingTest, NamesTheMistake) {
  const auto section = config::Section::Parse(GetParam().text, "cpu.yaml");
  const Status status = ParseCpuConfig(*section).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("cpu.yaml:1: pools.a." + GetParam().want));
}

const RefusedCase kRefused[] = {
    {"BadSpan", "pools: {a: {cpus: 1, borrow: {idle: some}}}", "borrow.idle is 'some'"},
    {"UnknownBorrowKey", "pools: {a: {cpus: 1, borrow: {from: b}}}", "borrow.from"},
    {"NothingIdle", "pools: {a: {cpus: 1, borrow: {idle: all}}}", "borrow.idle finds no idle CPUs"},
    {"LendsToNobody", "pools: {a: {cpus: 1, lend: {keep: 1}}}", "lend.to names no pool"},
    {"LendsToItself", "pools: {a: {cpus: 1, lend: {to: a}}}",
     "lend.to has 'a', which is not another pool"},
    {"LendsToNoPool", "pools: {a: {cpus: 1, lend: {to: [b]}}}",
     "lend.to has 'b', which is not another pool"},
    {"KeepsTooMany", "pools: {a: {cpus: 1, lend: {to: b, keep: 99999}}, b: {cpus: 2}}",
     "lend.keep is 99999, which is more than any machine has"},
    {"UnknownLendKey", "pools: {a: {cpus: 1, lend: {to: b, max: 1}}, b: {cpus: 2}}", "lend.max"},
};
INSTANTIATE_TEST_SUITE_P(Texts, RejectedSharingTest, testing::ValuesIn(kRefused),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::cpu::borrow_test
