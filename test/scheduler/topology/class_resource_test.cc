#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/node_state.h"
#include "manager/classes/class_choice.h"
#include "manager/publish/node_patch.h"
#include "scheduler/cache/cluster_cache.h"
#include "scheduler/cache/filter.h"
#include "scheduler/topology/class_offer.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler::class_resource_test {
namespace {

using manager::OfferedType;
using manager::OfferedTypes;
using testing::HasSubstr;
using Kind = PodContainer::Kind;

constexpr char kOfPod[] = "blockio.resources.alpha.kubernetes.io/default";
constexpr char kOfMain[] = "blockio.resources.alpha.kubernetes.io/container.main";
constexpr char kOfRuntimes[] = "blockio.resources.beta.kubernetes.io/pod";
constexpr char kLanes[] = "lanes.example.com.resources.qrm.io/pod";

/// blockio: fast, for two in namespaces db-*; slow, for all; secret, by permission only. lanes of
/// pods: left, for one pod.
OfferedTypes Offered() {
  auto rules = std::make_shared<manager::ClassTypeRules>();
  rules->classes["fast"] = {.capacity = 2, .namespaces = {"db-*"}};
  rules->classes["slow"] = {.namespaces = {"*"}};
  OfferedType blockio{.type = {.name = "blockio",
                               .classes = {{.name = "fast"},
                                           {.name = "gone", .problem = "its disk is gone"},
                                           {.name = "secret"},
                                           {.name = "slow"}}},
                      .rules = std::move(rules)};
  auto open = std::make_shared<manager::ClassTypeRules>();
  open->classes["left"].namespaces = {"*"};
  OfferedType lanes{.type = {.name = "lanes.example.com",
                             .level = sdk::ClassLevel::kPod,
                             .classes = {{.name = "left", .capacity = 1}}},
                    .rules = std::move(open)};
  return {blockio, lanes};
}

placement::Permissions Rules() {
  return placement::Permissions(
      {{.title = "spies", .namespaces = {"db-spies"}, .classes = {"blockio/secret"}}});
}

Pod Asking(const std::string& name, StringMap annotations,
           std::vector<PodContainer> containers = {{.name = "main"}}) {
  return {.uid = name,
          .pod_namespace = "db-1",
          .name = name,
          .annotations = std::move(annotations),
          .containers = std::move(containers)};
}

/// Node n1, which publishes as qrmd does, and n2, which publishes nothing.
class ClassResourceTest : public testing::Test {
 protected:
  ClassResourceTest() {
    handles_.Register(kClasses, MakeClassesHandle);
    cache_ = *ClusterCache::Make(handles_);
    cache_->ReplaceNodes(
        {{.name = "n1", .annotations = {{kNodeClasses, manager::ClassesText(Offered(), Rules())}}},
         {.name = "n2"}},
        "1");
    cache_->ReplacePods({.version = "1"});
  }
  std::string Refusal(const Pod& pod, const std::string& node = "n1") {
    return RefusalOf(*cache_->Publish(), handles_, pod, node);
  }
  void Bind(Pod pod) {
    pod.node = "n1";
    cache_->SetPod(pod);
  }

  HandleRegistry handles_;
  std::unique_ptr<ClusterCache> cache_;
};

TEST_F(ClassResourceTest, AClassMustBeThereAndWork) {
  EXPECT_EQ(Refusal(Asking("a", {})), "");
  EXPECT_EQ(Refusal(Asking("a", {{kOfPod, "slow"}})), "");
  EXPECT_EQ(Refusal(Asking("a", {{kOfPod, ""}})), "");
  EXPECT_EQ(Refusal(Asking("a", {{kOfPod, "gold"}})), "the node has no such class of blockio");
  EXPECT_EQ(Refusal(Asking("a", {{kOfPod, "gone"}})), "the node has no such class of blockio");
}

TEST_F(ClassResourceTest, ItIsForSomeNamespacesAndForThoseThatPermissionsName) {
  Pod pod = Asking("a", {{kOfPod, "fast"}});
  EXPECT_EQ(Refusal(pod), "");
  pod.pod_namespace = "web";
  EXPECT_EQ(Refusal(pod), "its namespace may not ask for that class of blockio there");
  Pod spy = Asking("b", {{kOfPod, "secret"}});
  EXPECT_EQ(Refusal(spy), "its namespace may not ask for that class of blockio there");
  spy.pod_namespace = "db-spies";
  EXPECT_EQ(Refusal(spy), "");
}

TEST_F(ClassResourceTest, ContainersThatRunAtTheSameTimeTakeOneEach) {
  const std::vector<PodContainer> two = {{.name = "init", .kind = Kind::kInit}, {.name = "main"}};
  Bind(Asking("a", {{kOfPod, "fast"}}, two));
  EXPECT_EQ(Refusal(Asking("b", {{kOfPod, "fast"}}, two)), "");
  const Pod large =
      Asking("c", {{kOfPod, "fast"}}, {{.name = "side", .kind = Kind::kSidecar}, {.name = "main"}});
  EXPECT_EQ(Refusal(large), "all places of the class of blockio are taken");
  cache_->DeletePod("a", "");
  EXPECT_EQ(Refusal(large), "");
}

TEST_F(ClassResourceTest, APodHasAClassOfItsLevelAsAWhole) {
  const std::vector<PodContainer> two = {{.name = "a"}, {.name = "b"}};
  EXPECT_EQ(Refusal(Asking("a", {{kLanes, "left"}}, two)), "");
  Bind(Asking("a", {{kLanes, "left"}}, two));
  EXPECT_EQ(Refusal(Asking("b", {{kLanes, "left"}})),
            "all places of the class of lanes.example.com are taken");
}

TEST_F(ClassResourceTest, KeysThatOnlyQrmdReadsWantANodeThatHasTheType) {
  EXPECT_EQ(Refusal(Asking("a", {{"rdt.resources.alpha.kubernetes.io/default", "gold"}})),
            "the node has no such type of classes");
  EXPECT_THAT(Refusal(Asking("a", {{kOfPod, "slow"}}), "n2"), HasSubstr("classes"));
  EXPECT_EQ(Refusal(Asking("a", {{kOfRuntimes, "slow"}}), "n2"), "");
}

TEST_F(ClassResourceTest, KeysOfTheProposalsLastVersionWantANodeThatHasTheType) {
  const Pod pod = Asking("a", {{"blockio.resources.kubernetes.io/default", "slow"}});
  EXPECT_EQ(Refusal(pod), "");
  EXPECT_THAT(Refusal(pod, "n2"), HasSubstr("classes"));
}

TEST_F(ClassResourceTest, AFullClassFiltersItsNodeByWhicheverKey) {
  Bind(Asking("a", {{kOfPod, "fast"}}));
  Bind(Asking("b", {{kOfMain, "fast"}}));
  for (const char* key : {kOfPod, kOfMain, kOfRuntimes, "blockio.resources.kubernetes.io/default",
                          "blockio.resources.beta.kubernetes.io/container.main"}) {
    EXPECT_EQ(Refusal(Asking("c", {{key, "fast"}})), "all places of the class of blockio are taken")
        << key;
  }
}

TEST_F(ClassResourceTest, PodsThatNodesSkipTakePlaces) {
  Pod skipped = Asking("a", {{kLanes, "left"}});
  skipped.pod_namespace = "kube-system";
  Bind(skipped);
  EXPECT_EQ(Refusal(Asking("b", {{kLanes, "left"}})),
            "all places of the class of lanes.example.com are taken");
}

TEST_F(ClassResourceTest, AKeyForAContainerThatThePodLacksFitsNowhere) {
  EXPECT_EQ(Refusal(Asking("a", {{kOfMain, "slow"}}, {{.name = "mian"}})),
            "a class key names a container that the pod does not have");
}

TEST_F(ClassResourceTest, KeysThatContradictEachOtherFitNowhere) {
  EXPECT_EQ(Refusal(Asking("a", {{kOfPod, "slow"}, {kOfRuntimes, "fast"}})),
            "its annotations for blockio contradict each other or name no class");
}

TEST_F(ClassResourceTest, AnOfferThatChangesCountsThePodsThatAreThere) {
  Bind(Asking("a", {{kOfPod, "fast"}}));
  OfferedTypes less = Offered();
  less.front().type.classes.front().capacity = 1;
  cache_->SetNode(
      {.name = "n1", .annotations = {{kNodeClasses, manager::ClassesText(less, Rules())}}});
  EXPECT_EQ(Refusal(Asking("b", {{kOfPod, "fast"}})),
            "all places of the class of blockio are taken");
}

TEST(ReadClassOfferTest, NamesTheAnnotationThatItCannotRead) {
  for (const char* text : {"", "[]", "{}", R"({"podClassResources": [{}]})"}) {
    EXPECT_THAT(MessageOf(ReadClassOffer(text).status()), HasSubstr("qrm.io/class-resources"))
        << text;
  }
}

/// The node's decisions, by its records.
class NodeClasses {
 public:
  bool Admits(const Pod& pod) {
    const checkpoint::PodMeta meta{.uid = pod.uid,
                                   .pod_namespace = pod.pod_namespace,
                                   .name = pod.name,
                                   .annotations = pod.annotations};
    const placement::Permissions rules = Rules();
    checkpoint::NodeState after = state_;
    for (const PodContainer& container : pod.containers) {
      const bool starts_first = container.kind != Kind::kApp;
      checkpoint::ContainerRecord record{
          .type = starts_first ? ContainerType::kInit : ContainerType::kMain,
          .restartable_init = container.kind == Kind::kSidecar};
      const auto chosen = manager::ChooseClasses(
          types_,
          {.pod = meta,
           .container = container.name,
           .type = record.type,
           .restartable_init = record.restartable_init},
          after, [&](const std::string& name) {
            return rules.Allows(pod.pod_namespace,
                                {.feature = placement::Feature::kClass, .name = name});
          });
      if (!chosen.ok()) {
        return false;
      }
      for (const auto& [type, one] : *chosen) {
        record.classes.Edit()[type] = one.name;
      }
      checkpoint::Change change;
      change.put_containers.push_back({meta, container.name, std::move(record)});
      after = after.With(std::move(change));
    }
    state_ = after;
    return true;
  }

 private:
  const OfferedTypes types_ = Offered();
  checkpoint::NodeState state_;
};

class RandomPods {
 public:
  Pod Next(int number) {
    Pod pod = Asking("p" + std::to_string(number), {}, {});
    pod.pod_namespace = OneOf({"db-1", "db-spies", "web", "kube-system"});
    for (int count = 1 + Pick(3); count > 0; --count) {
      const bool is_last = count == 1;
      pod.containers.push_back({.name = is_last ? "main" : "c" + std::to_string(count),
                                .kind = is_last ? Kind::kApp : static_cast<Kind>(Pick(3))});
    }
    for (const char* key : {kOfPod, kOfMain, kOfRuntimes, kLanes}) {
      if (Pick(3) == 0) {
        pod.annotations[key] = OneOf({"fast", "fast", "slow", "secret", "left", "gold", ""});
      }
    }
    return pod;
  }
  int Pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

 private:
  std::string OneOf(const std::vector<std::string>& words) {
    return words[static_cast<std::size_t>(Pick(static_cast<int>(words.size())))];
  }
  std::mt19937 random_{20261123};
};

TEST_F(ClassResourceTest, TheFilterDecidesAsTheNode) {
  RandomPods random;
  int placed = 0;
  for (int round = 0; round < 200; ++round) {
    NodeClasses node;
    std::vector<std::string> there;
    for (int i = 0; i < 10; ++i) {
      const Pod pod = random.Next(i);
      const std::string refusal = Refusal(pod);
      const bool admitted = node.Admits(pod);
      ASSERT_EQ(refusal.empty(), admitted)
          << refusal << ": " << testing::PrintToString(pod.annotations) << pod.pod_namespace;
      if (admitted) {
        ++placed;
        Bind(pod);
        there.push_back(pod.uid);
      }
    }
    for (const std::string& uid : there) {
      cache_->DeletePod(uid, "");
    }
  }
  EXPECT_GT(placed, 200);
  EXPECT_LT(placed, 1800);
}

}  // namespace
}  // namespace qrm::scheduler::class_resource_test
