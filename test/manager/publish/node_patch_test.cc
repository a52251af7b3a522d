#include "manager/publish/node_patch.h"

#include <chrono>
#include <memory>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace qrm::manager::node_patch_test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;

AllocatableResource Scalar(double amount) {
  return {.is_node_resource = true,
          .is_scalar_resource = true,
          .allocatable = amount,
          .capacity = amount + 1};
}

TEST(ExtendedResourcesTest, AreThosePluginsAskForUnderNamesThatPodsCanRequest) {
  AllocatableByResource offered = {
      {"example.com/dongle", Scalar(2.9)},      {"example.com/quiet", Scalar(2)},
      {"example.com/vague", Scalar(2)},         {"dongle", Scalar(2)},
      {"node.kubernetes.io/dongle", Scalar(2)}, {"requests.example.com/dongle", Scalar(2)}};
  offered["example.com/quiet"].is_node_resource = false;
  offered["example.com/vague"].is_scalar_resource = false;
  EXPECT_THAT(ExtendedResourcesOf(offered), ElementsAre(Pair("example.com/dongle", "2")));
}

/// Types blockio, with classes of unlimited and of limited number, and lanes of a plugin for pods.
OfferedTypes Types() {
  auto rules = std::make_shared<ClassTypeRules>();
  rules->classes["fast"] = {.capacity = 4, .namespaces = {"db"}};
  OfferedType blockio{.type = {.name = "blockio",
                               .classes = {{.name = "fast"},
                                           {.name = "gone", .problem = "its disk is gone"},
                                           {.name = "slow"}}},
                      .rules = std::move(rules)};
  OfferedType lanes{.type = {.name = "lanes.example.com",
                             .level = sdk::ClassLevel::kPod,
                             .is_mutable = false,
                             .classes = {{.name = "left", .capacity = 1}}},
                    .rules = std::make_shared<ClassTypeRules>()};
  return {blockio, lanes};
}

TEST(ClassResourcesTest, AreTheClassesOfLimitedNumber) {
  EXPECT_THAT(ClassResourcesOf(Types()),
              ElementsAre(Pair("blockio.qrm.io/fast", "4"), Pair("lanes.example.com/left", "1")));
}

TEST(ClassesTextTest, HasTheFormOfTheProposalsNodeStatus) {
  const placement::Permissions permissions(
      {{.namespaces = {"web-*"}, .classes = {"blockio/slow"}}});
  EXPECT_EQ(json::parse(ClassesText(Types(), permissions)), json::parse(R"({
    "podClassResources": [{"name": "lanes.example.com", "classes": ["left"], "immutable": true,
                           "capacity": {"left": 1}}],
    "containerClassResources": [{"name": "blockio", "classes": ["fast", "slow"],
                                 "immutable": false, "capacity": {"fast": 4},
                                 "namespaces": {"fast": ["db"]}}],
    "permissions": [{"namespaces": ["web-*"], "classes": ["blockio/slow"]},
                    {"namespaces": ["kube-system"], "classes": ["*"]},
                    {"namespaces": ["*"], "classes": []}]})"));
}

TEST(ClassesTextTest, NamesAllNamespacesOfAClassWhoseRightsTheApiServerChecks) {
  auto rules = std::make_shared<ClassTypeRules>();
  rules->classes["fast"] = {.namespaces = {"db"}, .service_accounts = {"web/runner"}};
  OfferedTypes types = Types();
  types.front().rules = std::move(rules);
  const json lists = json::parse(ClassesText(types, placement::Permissions()));
  EXPECT_EQ(lists["containerClassResources"][0]["namespaces"], json({{"fast", {"*"}}}));
}

TEST(PodClassesTextTest, HasTheClassesByLevelAndWhatIsLacking) {
  checkpoint::Change change;
  const checkpoint::PodMeta pod{.uid = "u", .pod_namespace = "db", .name = "p"};
  for (const char* container : {"a", "b"}) {
    change.put_containers.push_back({pod,
                                     container,
                                     {.classes = {{"blockio", *container == 'a' ? "fast" : ""},
                                                  {"lanes.example.com", "left"}}}});
  }
  const auto state = checkpoint::NodeState().With(change);
  const auto text = [&](const ClassProblems& problems) {
    return PodClassesText(*state.FindPod("u"), Types(), problems);
  };
  EXPECT_EQ(json::parse(text([](const ContainerKey& key) {
              return std::vector<std::string>(key.container == "b" ? 1 : 0, "it is full");
            })),
            json::parse(R"({"pod": {"lanes.example.com": "left"}, "containers": {"a": {"blockio":
                            "fast"}}, "problems": {"b": ["it is full"]}})"));
  change.put_containers.clear();
  change.put_containers.push_back({pod, "a", {}});
  const auto without = checkpoint::NodeState().With(change);
  EXPECT_EQ(PodClassesText(*without.FindPod("u"), Types(),
                           [](const ContainerKey&) { return std::vector<std::string>(); }),
            "");
}

TEST(ClassesTextTest, OffersNoClassOfATypeThatHasAProblem) {
  OfferedTypes types = Types();
  for (OfferedType& offered : types) {
    offered.type.problem = "its plugin is not running; start it";
  }
  EXPECT_THAT(ClassResourcesOf(types), testing::IsEmpty());
  const json lists = json::parse(ClassesText(types, placement::Permissions()));
  EXPECT_EQ(lists["containerClassResources"][0]["classes"], json::array());
  EXPECT_FALSE(lists["containerClassResources"][0].contains("capacity"));
}

/// A Node of kubelet's.
json Node() {
  return {{"metadata", {{"name", "n1"}, {"annotations", {{"other", "1"}}}}},
          {"status", {{"capacity", {{"cpu", "8"}}}, {"allocatable", {{"cpu", "7"}}}}}};
}

json Patched(json node, const NodeWishes& wishes) {
  if (const auto patch = NodePatch(node, wishes); patch.has_value()) {
    node.merge_patch(*patch);
  }
  return node;
}

TEST(NodePatchTest, SaysWhatIsWishedAndWhatIsOurs) {
  const json node =
      Patched(Node(), {.extended_resources = {{"e.com/a", "2"}, {"e.com/b", "3"}}, .classes = "x"});
  EXPECT_EQ(node["status"]["capacity"], json({{"cpu", "8"}, {"e.com/a", "2"}, {"e.com/b", "3"}}));
  EXPECT_EQ(node["status"]["allocatable"],
            json({{"cpu", "7"}, {"e.com/a", "2"}, {"e.com/b", "3"}}));
  EXPECT_EQ(node["metadata"]["annotations"], json({{"other", "1"},
                                                   {"qrm.io/extended-resources", "e.com/a,e.com/b"},
                                                   {"qrm.io/class-resources", "x"}}));
  EXPECT_THAT(OwnedResources(node), ElementsAre(Pair("e.com/a", "2"), Pair("e.com/b", "3")));
}

TEST(NodePatchTest, DriversAreReadyOrNotOrFallBackForTheNamespacesThatMayAsk) {
  const PluginInfo live{.resource = "cci.qrm.io/fast", .live = true};
  const PluginInfo away{.resource = "cci.qrm.io/slow"};
  const PluginInfo spare{.resource = "cci.qrm.io/spare"};
  const PluginInfo cpu{.resource = "cpu", .live = true};
  const placement::DriverOptions rules{
      {"spare", {.when_missing = placement::WhenMissing::kFallBack}},
      {"absent", {}},
      {"fast", {.namespaces = {"team-*"}}}};
  const placement::Permissions permissions(
      {{.title = "db", .namespaces = {"db"}, .drivers = {"slow"}}});
  EXPECT_EQ(json::parse(DriversText({live, away, spare, cpu}, rules, permissions)), json::parse(R"({
    "drivers": {"fast": {"state": "ready", "namespaces": ["team-*"]},
                "slow": {"state": "not running", "namespaces": []},
                "spare": {"state": "fallback", "namespaces": []},
                "absent": {"state": "not running", "namespaces": []}},
    "permissions": [{"namespaces": ["db"], "drivers": ["slow"]},
                    {"namespaces": ["kube-system"], "drivers": ["*"]},
                    {"namespaces": ["*"], "drivers": []}]})"));
}

TEST(NodePatchTest, IsNoneWhereAllIsSaid) {
  const NodeWishes wishes{.extended_resources = {{"e.com/a", "2"}}, .classes = "x"};
  EXPECT_EQ(NodePatch(Patched(Node(), wishes), wishes), std::nullopt);
  EXPECT_EQ(NodePatch(Node(), {}), std::nullopt);
}

TEST(NodePatchTest, AnAmountAsTheServerWritesItIsTheSame) {
  const NodeWishes wishes{.extended_resources = {{"e.com/a", "2000"}}};
  json node = Patched(Node(), wishes);
  node["status"]["capacity"]["e.com/a"] = node["status"]["allocatable"]["e.com/a"] = "2k";
  EXPECT_EQ(NodePatch(node, wishes), std::nullopt);
}

TEST(NodePatchTest, WhatKubeletZeroedIsPutBack) {
  const NodeWishes wishes{.extended_resources = {{"e.com/a", "2"}}};
  json node = Patched(Node(), wishes);
  node["status"]["allocatable"]["e.com/a"] = "0";
  EXPECT_THAT(NodePatch(node, wishes),
              Optional(json({{"status", {{"allocatable", {{"e.com/a", "2"}}}}}})));
}

TEST(NodePatchTest, WhatIsNotWishedAnyMoreIsRemovedAndNothingOfOthers) {
  json node = Patched(Node(), {.extended_resources = {{"e.com/a", "2"}}, .classes = "x"});
  node["status"]["capacity"]["nvidia.com/gpu"] = "1";
  node = Patched(node, {});
  EXPECT_EQ(node["status"]["capacity"], json({{"cpu", "8"}, {"nvidia.com/gpu", "1"}}));
  EXPECT_EQ(node["metadata"]["annotations"], json({{"other", "1"}}));
}

TEST(NodePatchTest, KubernetesOwnResourcesAreNeverOurs) {
  json node = Node();
  node["metadata"]["annotations"]["qrm.io/extended-resources"] = "cpu,memory";
  EXPECT_TRUE(OwnedResources(node).empty());
  EXPECT_EQ(Patched(node, {})["status"], Node()["status"]);
}

constexpr char kName[] = "example.com/dongle";
const KnownResources::Time kBegin{std::chrono::hours(1)};

auto HasAmount(double amount) {
  return ElementsAre(Pair(kName, Field(&AllocatableResource::allocatable, amount)));
}

TEST(KnownResourcesTest, ResourcesThatAreNotReportedAnyMoreStayForTheGracePeriod) {
  KnownResources known(seconds(10));
  known.Join({{kName, {.allocatable = 4}}}, kBegin);
  EXPECT_THAT(known.Join({}, kBegin + seconds(10)), HasAmount(4));
  EXPECT_THAT(known.Join({}, kBegin + seconds(11)), IsEmpty());
}

TEST(KnownResourcesTest, ThePeriodBeginsWithTheLatestReport) {
  KnownResources known(seconds(10));
  known.Join({{kName, {.allocatable = 4}}}, kBegin);
  known.Join({{kName, {.allocatable = 5}}}, kBegin + seconds(9));
  EXPECT_THAT(known.Join({}, kBegin + seconds(19)), HasAmount(5));
}

TEST(KnownResourcesTest, WhatANodeSaysFromBeforeCountsUntilAPluginReports) {
  KnownResources known(seconds(10));
  known.Recall({{kName, "2k"}}, kBegin);
  EXPECT_THAT(known.Join({}, kBegin), HasAmount(2000));
  EXPECT_THAT(known.Join({{kName, {.allocatable = 3}}}, kBegin), HasAmount(3));
}

}  // namespace
}  // namespace qrm::manager::node_patch_test
