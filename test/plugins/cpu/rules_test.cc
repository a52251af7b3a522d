// Rules assign containers to pools, grants or nothing; the first match wins.
#include "plugins/cpu/config/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/made_plugin.h"
#include "test/plugins/plugin_driver.h"

namespace qrm::cpu::rules_test {
namespace {

using rules::AmountSet;
using rules::Matches;
using rules::TextSet;
using test::Drive;
using test::Request;
using testing::HasSubstr;

/// The container that each selector below is tested with.
ContainerRequest Engine() {
  ContainerRequest request = Request("llm-7", "online", "cpu", 2.5);
  request.key.container = "engine";
  request.pod_namespace = "team-a";
  request.native_qos_class = "Burstable";
  request.runtime_class = "kata";
  request.labels = {{"app", "vllm"}, {"tier", "web"}};
  request.annotations = {{"katalyst.kubewharf.io/qos_level", "shared_cores"},
                         {"qrm.io/own-cpus", "true"},
                         {"qrm.io/pod-priority", "9000"}};
  return request;
}

struct SelectCase {
  std::string name;
  std::string select;
  bool want;
};
class SelectorTest : public testing::TestWithParam<SelectCase> {};

TEST_P(SelectorTest, FitsWhatItDescribes) {
  const CpuPluginConfig config =
      Config("rules: [{select: " + GetParam().select + ", leave-alone: true}]");
  ASSERT_EQ(config.rules.size(), 1U);
  EXPECT_EQ(Matches(config.rules[0].select, Engine()), GetParam().want);
}

const SelectCase kSelectors[] = {
    {"Nothing", "{}", true},
    {"Role", "{role: online}", true},
    {"OtherRole", "{role: offline}", false},
    {"AnyOfAList", "{role: [offline, online]}", true},
    {"EveryKey", "{role: online, namespace: team-b}", false},
    {"Star", "{namespace: team-*}", true},
    {"StarAmidst", "{namespace: t*m*a}", true},
    {"StarThatMustGoOn", "{pod: \"l*-7\"}", true},
    {"StarWithoutEnd", "{pod: \"l*-8\"}", false},
    {"QuestionMark", "{namespace: \"team-?\"}", true},
    {"QuestionMarkIsACharacter", "{namespace: \"team-a?\"}", false},
    {"Excluded", "{namespace: [team-*, \"!team-a\"]}", false},
    {"NotExcluded", "{namespace: [team-*, \"!team-b\"]}", true},
    {"OnlyExclusions", "{namespace: \"!kube-*\"}", true},
    {"Qos", "{qos: Burstable}", true},
    {"OtherQos", "{qos: [Guaranteed, BestEffort]}", false},
    {"QosLevel", "{qos-level: shared_cores}", true},
    {"OtherQosLevel", "{qos-level: reclaimed_cores}", false},
    {"Container", "{container: engine}", true},
    {"OtherContainer", "{container: proxy}", false},
    {"ContainerType", "{container-type: [main, init]}", true},
    {"OtherContainerType", "{container-type: sidecar}", false},
    {"RuntimeClass", "{runtime-class: kata}", true},
    {"Label", "{label: {app: [vllm, tgi]}}", true},
    {"EveryLabel", "{label: {app: vllm, tier: db}}", false},
    {"LabelThatIsNotThere", "{label: {shard: \"*\"}}", false},
    {"LabelThatIsNotThereIsNotExcluded", "{label: {shard: \"!a\"}}", true},
    {"Annotation", "{annotation: {qrm.io/own-cpus: \"true\"}}", true},
    {"OtherAnnotation", "{annotation: {qrm.io/own-cpus: \"false\"}}", false},
    {"Fraction", "{cpu: fraction}", true},
    {"Whole", "{cpu: whole}", false},
    {"CpuRange", "{cpu: 2..2.5}", true},
    {"OtherCpuRange", "{cpu: 3..8}", false},
    {"CpuAtLeast", "{cpu: \">=2.5\"}", true},
    {"CpuMoreThan", "{cpu: \">2.5\"}", false},
    {"CpuAtMost", "{cpu: \"<=2.5\"}", true},
    {"CpuLessThan", "{cpu: \"<2.5\"}", false},
    {"CpuExactly", "{cpu: 2.5}", true},
    {"PriorityAtLeast", "{priority: \">=9000\"}", true},
    {"OtherPriority", "{priority: [\"<0\", 1..8999]}", false},
    {"AnyCpu", "{cpu: [whole, \"<1\", \">2\"]}", true},
};
INSTANTIATE_TEST_SUITE_P(Texts, SelectorTest, testing::ValuesIn(kSelectors),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(SelectorTest, WholeCpusAreFromOneOn) {
  const StatusOr<AmountSet> whole = AmountSet::Parse({"whole"});
  ASSERT_TRUE(whole.ok());
  EXPECT_FALSE(whole->Has(0));
  EXPECT_TRUE(whole->Has(1));
  EXPECT_FALSE(whole->Has(1.5));
}

TEST(SelectorTest, APriorityThatIsNotKnownIsInNoBounds) {
  const StatusOr<AmountSet> any = AmountSet::Parse({">=-2147483648"});
  ASSERT_TRUE(any.ok()) << any.status();
  ContainerRequest request = Request("p", "", "cpu", 1);
  EXPECT_FALSE(Matches({.priority = *any}, request));
  request.annotations.Edit()["qrm.io/pod-priority"] = "-10";
  EXPECT_TRUE(Matches({.priority = *any}, request));
}

TEST(SelectorTest, AMissingRoleMatchesNoGlob) {
  EXPECT_FALSE(Matches({.role = TextSet({"*"})}, Request("p", "", "cpu", 1)));
  EXPECT_TRUE(Matches({.role = TextSet({"!online"})}, Request("p", "", "cpu", 1)));
}

constexpr char kRules[] = R"(reserved-cpus: 0-1
pools:
  web: {cpus: 2-9, roles: [web]}
  batch: {cpus: 10-19}
roles: {storage: {}}
grants:
  trading: {numa: one, containers: main}
  twins: {numa: any, containers: [a, b], share-numa-with: ["*"]}
  all: {numa: any, containers: all, share-numa-with: ["*"]}
rules:
  - {select: {namespace: preserved}, leave-alone: true}
  - {select: {label: {tier: batch}}, pool: batch}
  - select: {label: {tier: trading}}
    grant: trading
  - {select: {label: {tier: twins}}, grant: twins}
  - {select: {label: {tier: all}}, grant: all}
  - {select: {namespace: db}, grant: storage}
  - {select: {namespace: infra}, pool: reserved}
)";

ContainerRequest Tier(const std::string& pod, const std::string& tier, double amount) {
  ContainerRequest request = Request(pod, "web", "cpu", amount);
  request.labels = {{"tier", tier}};
  return request;
}

TEST(CpuRulesTest, LeadToPoolsAndGrantsBeforeTheRole) {
  Drive drive(Make(kRules));
  const auto batch = drive.Admit(Tier("batch", "batch", 1));
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->value, "10-19");
  EXPECT_EQ(batch->decided_by, "rules[1] (cpu.yaml:12)");

  const auto trading = drive.Admit(Tier("trading", "trading", 4));
  ASSERT_TRUE(trading.ok()) << trading.status();
  EXPECT_TRUE(trading->exclusive);
  EXPECT_EQ(trading->value, "20-23");
  EXPECT_EQ(trading->decided_by, "rules[2] (cpu.yaml:13)");

  const auto other = drive.Admit(Tier("other", "web", 1));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->value, "2-9");
  EXPECT_EQ(other->decided_by, "pools.web.roles");
}

TEST(CpuRulesTest, ReportWhichPoolNeedsAPermissionWhateverLedThere) {
  Drive drive(Make(kRules));
  EXPECT_EQ(drive.Admit(Tier("batch", "batch", 1))->pool, "batch");
  EXPECT_EQ(drive.Admit(Tier("other", "web", 1))->pool, "web") << "by its role";
  EXPECT_EQ(drive.Admit(Tier("trading", "trading", 4))->pool, "") << "exclusive CPUs";
  EXPECT_EQ(drive.Admit(Request("none", "", "cpu", 1))->pool, "") << "the default pool";
}

TEST(CpuRulesTest, LeadToARoleAndToTheReservedCpus) {
  Drive drive(Make(kRules));
  ContainerRequest request = Request("db", "", "cpu", 4);
  request.pod_namespace = "db";
  EXPECT_TRUE(drive.Admit(request)->exclusive);
  request = Request("infra", "", "cpu", 4);
  request.pod_namespace = "infra";
  EXPECT_EQ(drive.Admit(request)->value, "0-1");
}

TEST(CpuRulesTest, SkipAContainerThroughARestart) {
  Drive drive(Make(kRules));
  ContainerRequest request = Request("pod", "storage", "cpu", 4);
  request.pod_namespace = "preserved";
  const auto alone = drive.Admit(request);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->oci_property, "");
  EXPECT_EQ(alone->decided_by, "rules[0] (cpu.yaml:11)");
  drive.Reconcile();
  Drive after(Make(kRules), drive);
  after.Reconcile();
  EXPECT_EQ(after.Of("pod").oci_property, "");
  EXPECT_EQ(after.plugin().Pools().back().containers, 0U);
}

TEST(CpuRulesTest, GrantSaysWhichContainersHaveExclusiveCpus) {
  Drive drive(Make(kRules));
  const auto own = [&](const std::string& tier, const std::string& container, ContainerType type) {
    ContainerRequest request = Tier(tier + container, tier, 2);
    request.key.container = container;
    request.type = type;
    return drive.Admit(request)->exclusive;
  };
  EXPECT_TRUE(own("trading", "a", ContainerType::kMain));
  EXPECT_FALSE(own("trading", "b", ContainerType::kSidecar));
  EXPECT_TRUE(own("twins", "b", ContainerType::kSidecar));
  EXPECT_FALSE(own("twins", "c", ContainerType::kMain));
  EXPECT_TRUE(own("all", "c", ContainerType::kInit));
}

TEST(CpuRulesTest, KeepsWhatAGrantDoesNotCoverOnTheDefaultPool) {
  Drive drive(Make(kRules));
  ContainerRequest sidecar = Tier("pod", "trading", 1);
  sidecar.type = ContainerType::kSidecar;
  EXPECT_EQ(drive.Admit(sidecar)->value, "20-79");
  const auto none = drive.Admit(Tier("none", "trading", 0));
  EXPECT_EQ(none->value, "20-79");
  EXPECT_EQ(none->decided_by, "rules[2] (cpu.yaml:13), but the container requests no CPU");
}

TEST(CpuRulesTest, GrantsKeepTheirDistanceLikeRoles) {
  Drive drive(
      Make("grants: {a: {}, b: {}}\n"
           "rules: [{select: {label: {tier: a}}, grant: a}, {select: {}, grant: b}]"));
  ASSERT_EQ(drive.Admit(Tier("one", "a", 4))->value, "0-3");
  EXPECT_EQ(drive.Admit(Tier("two", "b", 4))->value, "40-43");
  EXPECT_THAT(MessageOf(drive.Admit(Tier("three", "b", 4)).status()),
              HasSubstr("(node 0: occupied by a, "));
}

struct RefusedCase {
  std::string name;
  std::string text;
  std::string want;
};
class RejectedRulesTest : public testing::TestWithParam<RefusedCase> {};

TEST_P(RejectedRulesTest, NameTheMistake) {
  const auto section = config::Section::Parse(GetParam().text, "cpu.yaml");
  const Status status = ParseCpuConfig(*section).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr(GetParam().want));
}

const RefusedCase kRefused[] = {
    {"NoTarget", "rules: [{select: {role: a}}]", "cpu.yaml:1: rules[0].select has no target"},
    {"TwoTargets", "rules: [{pool: default, leave-alone: true}]", "not the only target"},
    {"NotLeftAlone", "rules: [{leave-alone: false}]", "is 'false', so that the rule has no target"},
    {"UnknownPool", "rules:\n- {pool: default}\n- {pool: web}",
     ":3: rules[1].pool is 'web', which is not a pool"},
    {"ReservedPoolOfNoCpus", "rules: [{pool: reserved}]", "is not a pool"},
    {"UnknownGrant", "rules: [{grant: own}]", "is not a grant"},
    {"UnknownKey", "rules: [{select: {user: a}, pool: default}]", "rules[0].select.user"},
    {"NoPriority", "rules: [{select: {priority: whole}, pool: default}]",
     "rules[0].select.priority has 'whole', which is not a priority; write bounds"},
    {"UnknownQos", "rules: [{select: {qos: guaranteed}, pool: default}]",
     "write Guaranteed or Burstable or BestEffort"},
    {"UnknownQosLevel", "rules: [{select: {qos-level: shared}, pool: default}]", "shared_cores"},
    {"UnknownType", "rules: [{select: {container-type: helper}, pool: default}]",
     "main or sidecar"},
    {"NoWord", "rules: [{select: {role: []}, pool: default}]", "role is empty"},
    {"NoLabel", "rules: [{select: {label: {}}, pool: default}]", "label is empty"},
    {"BadAmount", "rules: [{select: {cpu: some}, pool: default}]", "the amount 'some'"},
    {"BadRange", "rules: [{select: {cpu: 8..2}, pool: default}]", "the amount '8..2'"},
    {"NoNumber", "rules: [{select: {cpu: \">=nan\"}, pool: default}]", "the amount"},
    {"GrantNamedLikeARole", "roles: {a: {}}\ngrants: {a: {}}", "the name of a role"},
    {"UnknownGrantKey", "grants: {a: {cpus: 1}}", "grants.a.cpus"},
    {"UnknownContainers", "grants: {a: {containers: some}}", "main or all"},
    {"UnknownPartner", "grants: {a: {share-numa-with: [b]}}", "which is not a role"},
};
INSTANTIATE_TEST_SUITE_P(Texts, RejectedRulesTest, testing::ValuesIn(kRefused),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::cpu::rules_test
