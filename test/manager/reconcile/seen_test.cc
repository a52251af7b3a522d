// A run that looks only at changes finds what a run that looks at everything would find.
#include "manager/reconcile/seen.h"

#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/proto/resourceplugin/v1alpha1/api.pb.h"
#include "manager/runtime/run_options.h"
#include "test/support/sample_node.h"

namespace qrm::manager::seen_test {
namespace {

using checkpoint::Change;
using checkpoint::NodeState;
using testing::ElementsAre;
using testing::Pair;

// A node of a few pods, whose plugins answer over a socket. Pods come and go, and plugins change,
// lose and invent allocations, also while they are asked.
class RandomNode {
 public:
  explicit RandomNode(uint32_t seed) : engine_(seed) {}

  int Draw(int below) { return static_cast<int>(engine_() % static_cast<uint32_t>(below)); }

  void ChangePods() {
    Change change;
    for (int i = Draw(3); i > 0; --i) {
      const std::string pod = Pod();
      AllocationByResource given;
      for (const std::string plugin : {"cpu", "lane"}) {
        given[plugin] = Allocation();
        held_[plugin][{"uid-" + pod, "main"}] = {{plugin, given[plugin]}};
      }
      change.put_containers.push_back({test::SamplePod(pod), "main", {.allocations = given}});
    }
    if (Draw(3) == 0) {
      change.remove_pods.push_back("uid-" + Pod());
    }
    Commit(std::move(change));
  }

  void ChangePlugins() {
    for (auto& [plugin, held] : held_) {
      for (int i = Draw(3); i > 0; --i) {
        const ContainerKey key{"uid-" + Pod(), "main"};
        Draw(3) == 0 ? void(held.erase(key))
                     : void(held[key] = {{Draw(5) == 0 ? "cpu" : plugin, Allocation()}});
      }
    }
  }

  void Commit(Change change) {
    state_ = std::make_shared<const NodeState>(state_->With(std::move(change)));
  }

  /// The answers of both or only one of them, which may fail.
  AllocationsByPlugin Answers() {
    AllocationsByPlugin answers;
    for (auto& [plugin, held] : held_) {
      const bool fails = Draw(8) == 0;
      if (fails) {
        answers.emplace(plugin, Errorf(StatusCode::kUnavailable, "away"));
      } else if (Draw(8) != 0) {
        answers.emplace(plugin, calls::ToHeld(held));
      }
    }
    return answers;
  }

  const std::shared_ptr<const NodeState>& state() const { return state_; }

 private:
  std::string Pod() { return std::to_string(Draw(20)); }
  // Some of them are invalid.
  ResourceAllocation Allocation() {
    return test::SharedCpus("0-" + std::to_string(Draw(9)), Draw(3));
  }

  std::mt19937 engine_;
  std::shared_ptr<const NodeState> state_ = std::make_shared<const NodeState>();
  std::map<std::string, AllocationByContainer> held_ = {{"cpu", {}}, {"lane", {}}};
};

void ExpectSame(const ReconcilePlan& some, const ReconcilePlan& all) {
  EXPECT_EQ(some.change, all.change);
  EXPECT_EQ(some.orphans, all.orphans);
  EXPECT_EQ(some.missing, all.missing);
  EXPECT_EQ(some.refused, all.refused);
  EXPECT_EQ(some.problems, all.problems);
  EXPECT_EQ(some.stale, all.stale);
}

TEST(ComparedAnswersTest, FindWhatAComparisonOfEverythingFinds) {
  const Machine machine = test::SampleMachine();
  RandomNode node(3);
  ComparedAnswers compared;
  std::size_t limited = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto asked = node.state();
    const AllocationsByPlugin answers = node.Answers();
    const Inquiry inquiry{asked, {}, node.Draw(2) == 0};
    if (node.Draw(4) == 0) {
      node.ChangePods();  // while they answer
    }
    const NodeState& now = *node.state();
    const PodsByPlugin scope = compared.ToCompare(inquiry, answers, now);
    limited += scope.size();
    const ReconcilePlan plan = PlanReconcile(*asked, now, answers, machine, {{}, scope});
    ExpectSame(plan, PlanReconcile(*asked, now, answers, machine));
    ASSERT_FALSE(testing::Test::HasFailure()) << i;
    compared.Note(inquiry, answers, plan);
    node.Commit(plan.change);
    if (node.Draw(2) == 0) {
      node.ChangePods();
    }
    node.ChangePlugins();
  }
  EXPECT_GT(limited, 500u) << "most comparisons are of what changed";
}

TEST(ComparedAnswersTest, AreNotComparedAgainWhenNothingChanged) {
  const auto state = std::make_shared<const NodeState>();
  const AllocationsByPlugin answers = {{"cpu", calls::ToHeld({})}};
  const Inquiry inquiry{state, {}, true};
  ComparedAnswers compared;
  EXPECT_TRUE(compared.ToCompare(inquiry, answers, *state).empty()) << "they are unknown";
  compared.Note(inquiry, answers, {});
  EXPECT_THAT(compared.ToCompare(inquiry, answers, *state),
              ElementsAre(Pair("cpu", testing::IsEmpty())));
}

// What accompanies another plugin's resource counts once no other plugin answers for it.
TEST(ComparedAnswersTest, AreComparedAgainWhenAnotherPluginLeaves) {
  const auto state = std::make_shared<const NodeState>();
  AllocationsByPlugin answers = {{"cpu", calls::ToHeld({})}, {"memory", calls::ToHeld({})}};
  const Inquiry inquiry{state, {}, true};
  ComparedAnswers compared;
  compared.Note(inquiry, answers, {});
  answers.erase("memory");
  EXPECT_TRUE(compared.ToCompare(inquiry, answers, *state).empty());
  const Inquiry of_cpu{state, {"memory"}, false};
  EXPECT_EQ(compared.ToCompare(of_cpu, answers, *state).size(), 1u) << "it was not asked";
}

TEST(UpdatedContainersTest, AreAllThatAnyoneWouldUpdate) {
  RandomNode node(5);
  LiveContainers live;
  UpdatedContainers updated(live);
  std::size_t looked_at = 0;
  std::size_t all = 0;
  for (int i = 0; i < 1000; ++i) {
    node.ChangePods();
    const ContainerKey key{"uid-" + std::to_string(node.Draw(20)), "main"};
    const std::string id = "id-" + std::to_string(node.Draw(2));
    switch (node.Draw(5)) {
      case 0:
        live.Add(key, {.id = id, .pod_id = "sandbox", .started = node.Draw(2) == 0});
        break;
      case 1:
        live.MarkStarted(key, id);
        break;
      case 2:
        live.Remove(key, id);
        break;
      case 3:
        live.Defer(key, id, {});
        break;
      default:
        break;
    }
    if (node.Draw(50) == 0) {
      updated.Forget();
    }
    const CpuSet offline = node.Draw(20) == 0 ? CpuSet{1} : CpuSet();
    const auto state = node.state();
    const auto some = updated.ToUpdate(state, offline);
    looked_at += some.size();
    all += live.All().size();
    const auto updates = PlanUpdates(*state, some, offline, live.DeferredKeys());
    ASSERT_EQ(updates, PlanUpdates(*state, live.All(), offline, live.DeferredKeys())) << i;
    updated.Note(updates);
    Change change;
    for (const PlannedUpdate& update : updates) {
      live.ClearDeferred(update.key, update.container_id);
      if (node.Draw(3) != 0) {  // the others fail, and leave the record as it is
        change.put_containers.push_back(
            {state->FindPod(update.key.pod_uid)->meta, update.key.container,
             AfterUpdate(*state->Find(update.key), update, Taken::kYes)});
      }
    }
    node.Commit(std::move(change));
  }
  EXPECT_LT(looked_at, all / 2);
}

}  // namespace
}  // namespace qrm::manager::seen_test
