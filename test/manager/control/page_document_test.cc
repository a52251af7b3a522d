// The live page's document about the node, also when names are hostile and many.
#include "manager/control/page_document.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "manager/control/page_decisions.h"
#include "test/support/sample_node.h"

namespace qrm::manager::page_document_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class PageDocumentTest : public testing::Test {
 protected:
  std::string Text() const {
    return PageDocument({.node_name = node_name_,
                         .state = state_,
                         .machine = machine_,
                         .status = status_,
                         .plugins = plugins_,
                         .latest_decisions = decisions_.latest,
                         .remarks_of = [this](const auto&, const auto&) { return remarks_; },
                         .unplaced = unplaced_});
  }
  json Document() const { return json::parse(Text()); }
  void Admit(const checkpoint::PodMeta& pod, AllocationByResource allocations) {
    state_ = state_.With(test::Admit(pod, "main", std::move(allocations)));
  }

  std::string node_name_ = "node-7";
  checkpoint::NodeState state_;
  const Machine machine_ = test::SampleMachine();
  NodeStatus status_;
  std::vector<PluginInfo> plugins_;
  PageDecisions decisions_;
  ContainerRemarks remarks_;
  std::vector<UnplacedContainer> unplaced_;
};

TEST_F(PageDocumentTest, SkippedUnpinnedAndIncompleteContainersHaveTheirStateAndTheReason) {
  remarks_.rejected = "no NIC is free";
  Admit(test::SamplePod("web"), {{"cpu", test::OwnCpus("0-1")}});
  checkpoint::Change skipped = test::Admit(test::SamplePod("agent"), "main", {});
  skipped.put_containers[0].record.skipped = "namespace x is in skip-namespaces";
  state_ = state_.With(skipped);
  unplaced_ = {{.key = {"uid-job", "main"},
                .pod_namespace = "shop",
                .pod_name = "job",
                .state = UnplacedState::kRejected,
                .why = "no CPU is free"},
               {.key = {"uid-web", "main"},  // it has a record
                .state = UnplacedState::kRejected,
                .why = "no NIC is free"}};
  const json containers = Document()["containers"];
  ASSERT_EQ(containers.size(), 3);
  EXPECT_EQ(containers[0]["state"], "skipped");
  EXPECT_EQ(containers[0]["why"], "namespace x is in skip-namespaces");
  EXPECT_EQ(containers[1]["state"], "incomplete");
  EXPECT_EQ(containers[1]["why"], "no NIC is free");
  EXPECT_EQ(containers[2]["pod"], "job");
  EXPECT_EQ(containers[2]["state"], "unpinned");
  EXPECT_EQ(containers[2]["why"], "no CPU is free");
}

TEST_F(PageDocumentTest, AContainerIsShownWithItsCpusAndMissingResources) {
  remarks_.runs_without = {"nic"};
  Admit(test::SamplePod("web"), {{"cpu", test::OwnCpus("0-1")}});
  const json container = Document()["containers"][0];
  EXPECT_EQ(container["pod"], "web");
  EXPECT_EQ(container["cpus"], "0-1");
  EXPECT_EQ(container["own"], true);
  EXPECT_EQ(container["without"], json({"nic"}));
}

TEST_F(PageDocumentTest, EachCpuOfTheMachineIsInOneCore) {
  int cpus = 0;
  const json document = Document();
  for (const json& node : document["nodes"]) {
    for (const json& cache : node["caches"]) {
      for (const json& core : cache) {
        cpus += static_cast<int>(core.size());
      }
    }
  }
  EXPECT_EQ(cpus, machine_.cpu_set().Count());
}

TEST_F(PageDocumentTest, APluginIsLiveSuspectOrNotRunningWithItsSentence) {
  plugins_ = {{.resource = "nic", .problem = "its socket is gone; start it"},
              {.resource = "cpu", .live = true},
              {.resource = "memory", .live = true, .problem = "hint names node 9"}};
  const json plugins = Document()["plugins"];
  EXPECT_EQ(plugins[0]["state"], "live");
  EXPECT_EQ(plugins[1]["state"], "suspect");
  EXPECT_EQ(plugins[2]["state"], "away");
  EXPECT_EQ(plugins[2]["problem"], "its socket is gone; start it");
}

TEST_F(PageDocumentTest, APoolThatWasResizedShowsTheConfiguredSize) {
  status_.pools = {{.resource = "cpu", .pool = "online", .configured = {0, 1}, .cpus = {0}},
                   {.resource = "cpu", .pool = "offline", .configured = {2}, .cpus = {2}}};
  const json pools = Document()["pools"];
  EXPECT_EQ(pools[0]["configured"], "0-1");
  EXPECT_FALSE(pools[1].contains("configured"));
}

TEST_F(PageDocumentTest, NothingInItAgesWhileNothingChanges) {
  const std::string before = Text();
  status_.started += std::chrono::seconds(9);
  status_.reconcile.last = status_.started;
  ++status_.reconcile.runs;
  EXPECT_EQ(Text(), before);
}

TEST_F(PageDocumentTest, TextOfOthersIsBoundedAndHasNoControlCharacters) {
  checkpoint::PodMeta pod = test::SamplePod(std::string(100'000, 'x') + "\x1b[2J\xff");
  pod.role = std::string(100'000, 'r');
  Admit(pod, {});
  plugins_ = {{.resource = "p", .problem = std::string(100'000, 'p')}};
  status_.warnings.assign(25, std::string(10'000, 'w'));
  const std::string text = Text();
  EXPECT_LT(text.size(), 20'000);
  EXPECT_TRUE(json::accept(text));
  EXPECT_THAT(text, HasSubstr("and 5 more: qrmctl status"));
}

TEST_F(PageDocumentTest, ContainersBeyondTheMostAreCounted) {
  checkpoint::Change change;
  for (std::size_t i = 0; i < kMostPageContainers + 5; ++i) {
    change.put_containers.push_back(
        {.pod = test::SamplePod(fmt::format("pod-{}", i)), .container = "main", .record = {}});
  }
  state_ = state_.With(change);
  const json document = Document();
  EXPECT_EQ(document["containers"].size(), kMostPageContainers);
  EXPECT_EQ(document["containers_left_out"], 5);
}

checkpoint::DecisionTrace Trace(const std::string& pod, const std::string& json_text) {
  return {.key = {pod, "main"},
          .pod_namespace = "shop",
          .pod_name = pod,
          .time = {},
          .admitted = false,
          .commit = {},
          .json = json_text};
}

TEST(PageDecisionsTest, TheLatestDecisionOnAContainerIsExplained) {
  const PageDecisions decisions =
      ReadForPage({Trace("web", R"({"result":"rejected","message":"no room"})"),
                   Trace("web", R"({"result":"admitted","policy":"best-effort",
         "requests":{"cpu":{"amount":2,"source":"kubelet"}},
         "hints":{"cpu":[{"nodes":[0],"preferred":true},{"nodes":[1],"preferred":false}]},
         "merged":{"cpu":{"nodes":[0],"preferred":true}},
         "allocations":{"cpu":{"property":"CpusetCpus","value":"2-3","exclusive":true}}})")});
  const json why = json::parse(decisions.why.at(PageIdOf({"web", "main"})));
  EXPECT_EQ(why["result"], "admitted");
  EXPECT_EQ(why["asked"], json::parse(R"j([["cpu","2 (from kubelet)"]])j"));
  EXPECT_EQ(why["hints"], json::parse(R"([["cpu","node 0 preferred; node 1"]])"));
  EXPECT_EQ(why["merged"], json::parse(R"([["cpu","node 0 preferred"]])"));
  EXPECT_EQ(why["given"], json::parse(R"j([["cpu","2-3 (exclusive)"]])j"));
  const json latest = json::parse(decisions.latest);
  EXPECT_EQ(latest[0]["result"], "admitted");
  EXPECT_EQ(latest[1]["message"], "no room");
}

TEST(PageDecisionsTest, DocumentsOfAnyShapeAreBounded) {
  json wide = json::object();
  for (int i = 0; i < 20; ++i) {
    wide["hints"][std::to_string(i)] = std::string(1200, 'h');
    wide["requests"][std::to_string(i)] = {{"source", std::string(1200, 's')}};
    wide["merge_reasons"].push_back(std::string(1200, 'm'));
  }
  for (const std::string& text : {wide.dump(), std::string("7"), std::string("{"),
                                  std::string(R"({"hints":[1],"requests":"x","merged":7})")}) {
    const PageDecisions decisions = ReadForPage({Trace("web", text)});
    const std::string& why = decisions.why.at(PageIdOf({"web", "main"}));
    EXPECT_TRUE(json::accept(why)) << why;
    EXPECT_LE(why.size(), kMostWhyBytes);
  }
}

}  // namespace
}  // namespace qrm::manager::page_document_test
