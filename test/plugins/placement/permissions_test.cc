// Permissions: every feature for every kind of pod, and the rules themselves.
#include "plugins/placement/permissions.h"

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"
#include "plugins/placement/requests.h"

namespace qrm::placement::permissions_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kLevel[] = "katalyst.kubewharf.io/qos_level";
constexpr char kCpu[] = "katalyst.kubewharf.io/cpu_enhancement";
constexpr char kMemory[] = "katalyst.kubewharf.io/memory_enhancement";
constexpr char kSkip[] = "katalyst.kubewharf.io/skip_qrm_admit";
constexpr char kNetns[] = "kubernetes.io/host-netns-path";

StatusOr<Permissions> Read(const std::string& rules) {
  const auto section = config::Section::Parse("permissions: " + rules, "qrmd.yaml");
  Permissions permissions;
  QRM_RETURN_IF_ERROR(section.status());
  QRM_RETURN_IF_ERROR(PermissionsKey("permissions", permissions, "").read(*section, "permissions"));
  return permissions;
}

/// One namespace may have everything, one nothing; others, and kube-system, have the defaults.
constexpr char kRules[] = R"(
  - {namespaces: ["list*"], allow: [everything]}
  - {namespaces: [closed]})";

struct FeatureCase {
  std::string name;
  std::string word;  ///< as rejections name it
  std::string key;   ///< what asks for it
  bool usual;        ///< whether it is allowed without a rule
  ContainerDemand demand;
  std::map<std::string, double> requests;
  AllocationByResource given;
};

ContainerDemand Annotated(StringMap annotations) {
  ContainerDemand demand;
  demand.pod.annotations = std::move(annotations);
  demand.pod.qos_class = "Guaranteed";
  return demand;
}

ContainerDemand OfRole(const std::string& role) {
  ContainerDemand demand;
  demand.pod.role = role;
  demand.role_key = "label katalyst.kubewharf.io/pod_role";
  return demand;
}

const FeatureCase kFeatures[] = {
    {.name = "OptOut",
     .word = "opt-out",
     .key = "annotation katalyst.kubewharf.io/skip_qrm_admit",
     .usual = false,
     .demand = Annotated({{kSkip, "true"}})},
    {.name = "ReservedCpus",
     .word = "reserved-cpus",
     .key = "annotation katalyst.kubewharf.io/qos_level=system_cores",
     .usual = false,
     .demand = Annotated({{kLevel, "system_cores"}})},
    {.name = "OwnCpus",
     .word = "own-cpus",
     .key = "annotation katalyst.kubewharf.io/qos_level=dedicated_cores",
     .usual = true,
     .demand = Annotated({{kLevel, "dedicated_cores"}})},
    {.name = "StaticCpus",
     .word = "own-cpus",
     .key = "its QoS class Guaranteed",
     .usual = true,
     .demand = Annotated({}),
     .given = {{"cpu", ResourceAllocation{.exclusive = true}}}},
    {.name = "NumaNodes",
     .word = "numa-nodes",
     .key = "numa_exclusive of annotation katalyst.kubewharf.io/memory_enhancement",
     .usual = true,
     .demand =
         Annotated({{kLevel, "dedicated_cores"}, {kMemory, R"({"numa_exclusive": "true"})"}})},
    {.name = "Pool",
     .word = "pool batch",
     .key = "cpuset_pool of annotation katalyst.kubewharf.io/cpu_enhancement",
     .usual = true,
     .demand = Annotated({{kCpu, R"({"cpuset_pool": "batch"})"}})},
    {.name = "PoolOfAQosLevel",
     .word = "pool share",
     .key = "annotation qos_level",
     .usual = true,
     .demand = Annotated({{kLevel, "shared_cores"}}),
     .given = {{"cpu", ResourceAllocation{.pool = "share", .decided_by = "annotation qos_level"}}}},
    {.name = "Role",
     .word = "role database",
     .key = "label katalyst.kubewharf.io/pod_role=database",
     .usual = true,
     .demand = OfRole("database")},
    {.name = "Nic",
     .word = "resource NIC",
     .key = "implicit-resources by its role or annotation",
     .usual = true,
     .demand = Annotated({}),
     .requests = {{"cpu", 1}, {"memory", 1}, {"hugepages-2Mi", 1}, {"NIC", 1}}},
    {.name = "NetworkNamespace",
     .word = "network-namespaces",
     .key = "its request of NIC",
     .usual = true,
     .demand = Annotated({}),
     .given = {{"NIC", ResourceAllocation{.annotations = {{kNetns, "/run/netns/a"}}}}}},
};

class FeatureTest : public testing::TestWithParam<FeatureCase> {
 protected:
  /// The reason why a pod of `pod_namespace` does not get it; empty when it does.
  std::string Refusal(const std::string& pod_namespace, const std::string& owner = "",
                      const std::string& priority_class = "") const {
    const FeatureCase& param = GetParam();
    const AdmissionOptions options{.permissions = *Read(kRules)};
    ContainerDemand demand = param.demand;
    demand.pod.pod_namespace = pod_namespace;
    demand.controller_kind = owner;
    demand.priority_class = priority_class;
    Status status = CheckWishes(demand, param.requests, options);
    status.Update(CheckGiven(demand, param.given, options));
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kPermissionDenied) << status;
    return MessageOf(status);
  }
  std::string Sentence(const std::string& rule, const std::string& pod_namespace) const {
    return fmt::format(
        "{} does not allow {} in namespace {} ({} asks for it); remove it from the pod, or allow "
        "it in a rule of permissions",
        rule, GetParam().word, pod_namespace, GetParam().key);
  }
};

TEST_P(FeatureTest, IsForTheSystemAndForNamespacesThatARuleLists) {
  EXPECT_EQ(Refusal("kube-system"), "");
  EXPECT_EQ(Refusal("listed"), "");
}

TEST_P(FeatureTest, IsRejectedToOthersUnlessItIsUsualWhateverTheyForge) {
  const std::string want =
      GetParam().usual ? "" : Sentence("the default rule of permissions", "unlisted");
  EXPECT_EQ(Refusal("unlisted"), want);
  EXPECT_EQ(Refusal("unlisted", "DaemonSet"), want);
  EXPECT_EQ(Refusal("unlisted", "", "system-node-critical"), want);
}

TEST_P(FeatureTest, IsRejectedByTheFirstRuleThatNamesTheNamespace) {
  const std::string want = Sentence("rule 2 of permissions (namespaces closed)", "closed");
  // dedicated_cores comes before annotations that refine it.
  EXPECT_EQ(Refusal("closed"),
            GetParam().name == "NumaNodes"
                ? "rule 2 of permissions (namespaces closed) does not allow own-cpus in namespace "
                  "closed (annotation katalyst.kubewharf.io/qos_level=dedicated_cores asks for "
                  "it); remove it from the pod, or allow it in a rule of permissions"
                : want);
}

INSTANTIATE_TEST_SUITE_P(All, FeatureTest, testing::ValuesIn(kFeatures),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(WishesTest, ARequestForNothingIsNeverRejected) {
  AdmissionOptions options{.permissions = *Read("[{namespaces: [\"*\"]}]")};
  ContainerDemand demand = Annotated({{"example.com/other", "{{{"}});
  demand.pod.pod_namespace = "default";
  demand.controller_kind = "DaemonSet";
  EXPECT_TRUE(CheckWishes(demand, {{"cpu", 2}, {"memory", 1}}, options).ok());
}

TEST(WishesTest, QuoteOnlyTheBeginningOfANameAndNoControlCharacter) {
  const AdmissionOptions options{.permissions = *Read("[{namespaces: [\"*\"]}]")};
  ContainerDemand demand = OfRole("\x1b[2J" + std::string(250'000, 'x'));
  const std::string refusal = MessageOf(CheckWishes(demand, {}, options));
  EXPECT_THAT(refusal, HasSubstr("role \\x1b[2Jxxx"));
  EXPECT_THAT(refusal, HasSubstr("... (250004 bytes)"));
  EXPECT_LT(refusal.size(), 1000);
}

TEST(WishesTest, RejectAnnotationsThatCannotBeRead) {
  const Status refused = CheckWishes(Annotated({{kCpu, "["}}), {}, {});
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
}

TEST(PermissionsTest, FirstRuleThatMatchesDecides) {
  const auto permissions = Read(R"([{namespaces: [team-a, "*-x"]}, {namespaces: ["team-*"]}])");
  ASSERT_TRUE(permissions.ok()) << permissions.status();
  EXPECT_THAT(permissions->rules(), SizeIs(4));
  EXPECT_EQ(permissions->RuleFor("team-a").title, "rule 1 of permissions (namespaces team-a, *-x)");
  EXPECT_EQ(permissions->RuleFor("team-x").title, "rule 1 of permissions (namespaces team-a, *-x)");
  EXPECT_EQ(permissions->RuleFor("team-b").title, "rule 2 of permissions (namespaces team-*)");
  EXPECT_EQ(permissions->RuleFor("steam-b").title, "the default rule of permissions");
  EXPECT_EQ(permissions->RuleFor("").title, "the default rule of permissions");
}

TEST(PermissionsTest, StarsMatchAnyText) {
  const auto matches = [](const std::string& glob, const std::string& text) {
    const auto permissions = Read("[{namespaces: [\"" + glob + "\"]}]");
    return permissions->RuleFor(text).title.starts_with("rule 1");
  };
  EXPECT_TRUE(matches("a*b*c", "abc"));
  EXPECT_TRUE(matches("a*b*c", "a-b-b-c"));
  EXPECT_TRUE(matches("*", "any"));
  EXPECT_TRUE(matches("**", "any"));
  EXPECT_FALSE(matches("a*b*c", "acb"));
  EXPECT_FALSE(matches("a*a", "a")) << "a letter counts once";
  EXPECT_FALSE(matches("ab", "abc"));
}

TEST(PermissionsTest, NetworkNamespacesCountUnderAllNamesThatAreConfigured) {
  const AdmissionOptions options{.permissions = *Read(R"([{namespaces: ["*"]}])"),
                                 .netns_annotations = {"example.com/netns", "example.com/other"}};
  const auto refused = [&](const char* annotation) {
    return !CheckGiven({},
                       {{"NIC", ResourceAllocation{.annotations = {{annotation, "/run/netns/a"}}}}},
                       options)
                .ok();
  };
  EXPECT_TRUE(refused("example.com/netns"));
  EXPECT_TRUE(refused("example.com/other"));
  EXPECT_FALSE(refused("example.com/more"));
}

TEST(PermissionsTest, ARuleAllowsOnlyWhatItLists) {
  const auto permissions = Read(
      R"([{namespaces: [a], allow: [own-cpus, opt-out], pools: ["web-*"], resources: [NIC]}])");
  ASSERT_TRUE(permissions.ok()) << permissions.status();
  const PermissionRule& rule = permissions->RuleFor("a");
  EXPECT_THAT(AllowedWords(rule), ElementsAre("opt-out", "own-cpus"));
  EXPECT_THAT(rule.roles, IsEmpty());
  EXPECT_TRUE(permissions->Allows("a", {Feature::kPool, "web-1", ""}));
  EXPECT_FALSE(permissions->Allows("a", {Feature::kPool, "batch", ""}));
  EXPECT_FALSE(permissions->Allows("a", {Feature::kRole, "web-1", ""}));
  EXPECT_TRUE(permissions->Allows("a", {Feature::kResource, "NIC", ""}));
}

TEST(PermissionsTest, EverythingIncludesNamesUnlessTheyAreListed) {
  const auto permissions = Read("[{namespaces: [a], allow: [everything], roles: [web]}]");
  ASSERT_TRUE(permissions.ok()) << permissions.status();
  EXPECT_THAT(AllowedWords(permissions->RuleFor("a")), SizeIs(5));
  EXPECT_TRUE(permissions->Allows("a", {Feature::kPool, "batch", ""}));
  EXPECT_FALSE(permissions->Allows("a", {Feature::kRole, "other", ""}));
}

TEST(PermissionsTest, RejectsMistakesWithLocationAndCure) {
  EXPECT_THAT(MessageOf(Read("[{allow: [opt-out]}]").status()),
              HasSubstr("is missing, so that the rule applies to no pod"));
  EXPECT_THAT(MessageOf(Read("[{namespaces: [a], allow: [all]}]").status()),
              HasSubstr("has 'all', which is not a permission; choose from everything, opt-out, "
                        "reserved-cpus, own-cpus, numa-nodes and network-namespaces"));
  EXPECT_THAT(MessageOf(Read("[{namespaces: [a], nodes: [b]}]").status()), HasSubstr("nodes"));
}

}  // namespace
}  // namespace qrm::placement::permissions_test
