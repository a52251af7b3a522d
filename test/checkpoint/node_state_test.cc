// The guarantees of NodeState's transitions: whole records, shared with former states, in order.
#include "checkpoint/node_state.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/holdings.h"
#include "test/checkpoint/sample_state.h"

namespace qrm::checkpoint::node_state_test {
namespace {

using test::PutSample;
using test::RandomChanges;
using test::RemoveSample;
using test::SampleContainer;
using testing::ElementsAre;

std::vector<std::string> Uids(const NodeState& state) {
  std::vector<std::string> uids;
  state.ForEachPod([&](const PodRecord& pod) { uids.push_back(pod.meta.uid); });
  return uids;
}

TEST(NodeStateTest, FindsAddedEntries) {
  const NodeState state = NodeState().With(PutSample("a"));

  ASSERT_NE(state.Find({"a", "main"}), nullptr);
  EXPECT_EQ(*state.Find({"a", "main"}), SampleContainer("a").record);
  EXPECT_EQ(state.FindPod("a")->meta, SampleContainer("a").pod);
  EXPECT_EQ(state.Find({"a", "other"}), nullptr);
  EXPECT_EQ(state.Find({"b", "main"}), nullptr);
}

TEST(NodeStateTest, LeavesEarlierStatesAsTheyWere) {
  const NodeState first = NodeState().With(PutSample("a"));
  const NodeState second = first.With(PutSample("b")).With(RemoveSample("a"));

  EXPECT_THAT(Uids(first), ElementsAre("a"));
  EXPECT_THAT(Uids(second), ElementsAre("b"));
}

TEST(NodeStateTest, SharesTheRecordsThatDidNotChange) {
  const NodeState first = NodeState().With(PutSample("a")).With(PutSample("b"));
  const NodeState second = first.With(PutSample("b"));

  EXPECT_EQ(first.FindPod("a"), second.FindPod("a"));
  EXPECT_NE(first.FindPod("b"), second.FindPod("b"));
}

TEST(NodeStateTest, DropsAPodWithItsLastContainer) {
  const NodeState both = NodeState().With(PutSample("a", "one")).With(PutSample("a", "two"));
  Change change;
  change.remove_containers = {{"a", "one"}};
  const NodeState one = both.With(change);
  EXPECT_EQ(one.container_count(), 1U);
  EXPECT_NE(one.FindPod("a"), nullptr);

  change.remove_containers = {{"a", "two"}};
  EXPECT_EQ(one.With(change).FindPod("a"), nullptr);
  EXPECT_EQ(one.With(change).FindPodByName("default", "pod-a"), nullptr);
}

TEST(NodeStateTest, AppliesRemovalsBeforePuts) {
  Change change = PutSample("a", "new");
  change.remove_pods = {"a"};
  const NodeState state = NodeState().With(PutSample("a", "old")).With(change);

  EXPECT_EQ(state.Find({"a", "old"}), nullptr);
  EXPECT_NE(state.Find({"a", "new"}), nullptr);
}

TEST(NodeStateTest, IgnoresRemovalsOfWhatIsUnknown) {
  Change change = RemoveSample("b");
  change.remove_containers = {{"a", "other"}, {"c", "main"}};
  change.done_pending_removals = {{"a", "cpu"}};
  const NodeState state = NodeState().With(PutSample("a"));

  EXPECT_EQ(state.With(change), state);
}

TEST(NodeStateTest, FindsTheLastAdmittedOfOneName) {
  Change older = PutSample("z");
  Change newer = PutSample("a");
  older.put_containers[0].pod.name = newer.put_containers[0].pod.name = "same";
  const NodeState both = NodeState().With(older).With(newer);

  EXPECT_EQ(both.FindPodByName("default", "same")->meta.uid, "a");
  EXPECT_EQ(both.With(RemoveSample("a")).FindPodByName("default", "same")->meta.uid, "z");
  EXPECT_EQ(both.With(older).FindPodByName("default", "same")->meta.uid, "a");
}

TEST(NodeStateTest, FollowsAPodThatChangesItsName) {
  Change renamed = PutSample("a");
  renamed.put_containers[0].pod.name = "renamed";
  const NodeState state = NodeState().With(PutSample("a")).With(renamed);

  EXPECT_EQ(state.FindPodByName("default", "pod-a"), nullptr);
  EXPECT_NE(state.FindPodByName("default", "renamed"), nullptr);
}

TEST(NodeStateTest, KeepsPendingRemovalsUntilDone) {
  Change change;
  change.add_pending_removals = {{"a", "cpu"}, {"a", "memory"}};
  const NodeState pending = NodeState().With(change);
  EXPECT_THAT(pending.pending_removals().at("a"), ElementsAre("cpu", "memory"));

  Change done;
  done.done_pending_removals = {{"a", "cpu"}};
  EXPECT_THAT(pending.With(done).pending_removals().at("a"), ElementsAre("memory"));
  done.done_pending_removals = {{"a", "cpu"}, {"a", "memory"}};
  EXPECT_TRUE(pending.With(done).pending_removals().empty());
}

TEST(NodeStateTest, CountsAndOrdersThousandsOfPods) {
  NodeState state;
  std::map<std::string, int> expected;
  RandomChanges random(7);
  for (int i = 0; i < 3000; ++i) {
    const std::string uid = std::to_string(random.Draw(1000));
    const bool put = random.Draw(3) > 0;
    state = state.With(put ? PutSample(uid) : RemoveSample(uid));
    if (put) {
      expected[uid] = 1;
    } else {
      expected.erase(uid);
    }
  }

  std::vector<std::string> uids;
  uids.reserve(expected.size());
  for (const auto& [uid, one] : expected) {
    uids.push_back(uid);
  }
  EXPECT_EQ(Uids(state), uids);
  EXPECT_EQ(state.pod_count(), uids.size());
  EXPECT_EQ(state.container_count(), uids.size());
}

TEST(NodeStateTest, IsMadeAgainByItsOwnChange) {
  RandomChanges random(11);
  NodeState state;
  for (int i = 0; i < 200; ++i) {
    state = state.With(random.Next());
    ASSERT_EQ(NodeState().With(state.AsChange()), state);
    std::size_t containers = 0;
    state.ForEachPod([&](const PodRecord& pod) { containers += pod.containers.size(); });
    ASSERT_EQ(state.container_count(), containers);
  }
}

/// Every pod and the plugins' pending removals; not which of two pods of one name was admitted
/// first.
void ExpectSameContent(const NodeState& a, const NodeState& b) {
  ASSERT_EQ(Uids(a), Uids(b));
  a.ForEachPod([&](const PodRecord& pod) {
    const PodRecord& other = *b.FindPod(pod.meta.uid);
    EXPECT_EQ(pod.meta, other.meta);
    ASSERT_EQ(pod.containers.size(), other.containers.size());
    for (const auto& [name, record] : pod.containers) {
      EXPECT_EQ(*record, *other.containers.at(name));
    }
  });
  EXPECT_EQ(a.pending_removals(), b.pending_removals());
}

std::vector<std::string> CpuOwners(const NodeState& state) {
  std::vector<std::string> uids;
  state.ForEachCpuOwner([&](const PodRecord& pod) {
    EXPECT_EQ(&pod, state.FindPod(pod.meta.uid)) << "its latest record";
    uids.push_back(pod.meta.uid);
  });
  return uids;
}

TEST(NodeStateTest, KnowsOwnersOfCpusAndBoundMemoryWithoutAWalk) {
  RandomChanges random(17);
  NodeState state;
  for (int i = 0; i < 300; ++i) {
    state = state.With(random.Next());
    std::vector<std::string> owners;
    std::map<uint64_t, uint64_t> bound;
    state.ForEachPod([&](const PodRecord& pod) {
      if (OwnsCpus(pod)) {
        owners.push_back(pod.meta.uid);
      }
      PodMemory(pod).ForEachNode([&](uint64_t node, uint64_t bytes) { bound[node] += bytes; });
    });
    ASSERT_EQ(CpuOwners(state), owners);
    auto known = state.bound_memory();
    std::erase_if(known, [](const auto& entry) { return entry.second == 0; });
    ASSERT_EQ(known, bound);
  }
  EXPECT_FALSE(CpuOwners(state).empty());
  EXPECT_FALSE(state.bound_memory().empty());
}

/// The number of the pod's containers with the class at once, as they start one after the other.
uint64_t HoldersOf(const PodRecord& pod, const ClassName& name) {
  uint64_t beside = 0;
  uint64_t in_turn = 0;
  for (const auto& [container, record] : pod.containers) {
    const auto found = record->classes.find(name.first);
    if (found != record->classes.end() && found->second == name.second) {
      const bool ends = record->type == ContainerType::kInit && !record->restartable_init;
      (ends ? in_turn : beside) += 1;
    }
  }
  return beside > 0 ? beside : std::min<uint64_t>(in_turn, 1);
}

TEST(NodeStateTest, KnowsWithoutAWalkHowManyHaveEachClass) {
  RandomChanges random(19);
  NodeState state;
  std::size_t most = 0;
  for (int i = 0; i < 300; ++i) {
    state = state.With(random.Next());
    ClassUse counted;
    std::vector<NodeState::PodPtr> pods;
    state.ForEachPod([&](const PodRecord& pod) {
      pods.push_back(std::make_shared<const PodRecord>(pod));
      std::set<ClassName> names;
      for (const auto& [container, record] : pod.containers) {
        names.insert(record->classes.begin(), record->classes.end());
      }
      for (const ClassName& name : names) {
        counted[name].pods += 1;
        counted[name].containers += HoldersOf(pod, name);
      }
    });
    ASSERT_EQ(state.class_use(), counted);
    ASSERT_EQ(NodeState::Restore(pods).class_use(), counted);
    most = std::max(most, counted.size());
  }
  EXPECT_GT(most, 0u);
}

TEST(NodeStateTest, KnowsWithoutAWalkWhereContainersMayRun) {
  RandomChanges random(23);
  NodeState state;
  for (int i = 0; i < 300; ++i) {
    state = state.With(random.Next());
    CpuLists counted;
    std::vector<NodeState::PodPtr> pods;
    state.ForEachPod([&](const PodRecord& pod) {
      pods.push_back(std::make_shared<const PodRecord>(pod));
      for (const auto& [container, record] : pod.containers) {
        for (const std::string& list : CpuListsOf(*record)) {
          ++counted[list];
        }
      }
    });
    ASSERT_EQ(state.cpu_lists(), counted);
    ASSERT_EQ(NodeState::Restore(pods).cpu_lists(), counted);
  }
  EXPECT_GT(state.cpu_lists().size(), 1u);
}

TEST(CpuListsTest, AreTheAllocationsAndTheValuesThatTheRuntimeTook) {
  const auto pinned = [](const std::string& cpus) {
    return ResourceAllocation{.oci_property = std::string(kCpusetCpus), .value = cpus};
  };
  ContainerRecord record{
      .allocations = {{"cpu", pinned("0-3")}, {"memory", ResourceAllocation{.value = "0"}}}};
  EXPECT_EQ(CpuListsOf(record), (std::set<std::string>{"", "0-3"}));
  record.applied = {{std::string(kCpusetCpus), "2-5"}};
  EXPECT_EQ(CpuListsOf(record), (std::set<std::string>{"0-3", "2-5"}));
}

TEST(NodeStateTest, NoContainerRunsWhereTheLastOneHasEnded) {
  Change put;
  put.put_containers.push_back({{.uid = "u"}, "c", {.applied = {{"CpusetCpus", "0-3"}}}});
  Change removal;
  removal.remove_pods = {"u"};
  const NodeState with = NodeState().With(std::move(put));
  EXPECT_EQ(with.cpu_lists(), (CpuLists{{"0-3", 1}}));
  EXPECT_TRUE(with.With(std::move(removal)).cpu_lists().empty());
}

TEST(NodeStateTest, CallsEachPodOfANameInTheOrderOfTheirAdmission) {
  NodeState state;
  for (const char* uid : {"z", "a", "m"}) {
    Change change;
    change.put_containers.push_back({{.uid = uid, .pod_namespace = "ns", .name = "pod"}, "c", {}});
    state = state.With(std::move(change));
  }
  const auto uids_of = [&](const std::string& name) {
    std::vector<std::string> uids;
    state.ForEachPodNamed("ns", name, [&](const PodRecord& pod) { uids.push_back(pod.meta.uid); });
    return uids;
  };
  EXPECT_EQ(uids_of("pod"), (std::vector<std::string>{"z", "a", "m"}));
  EXPECT_TRUE(uids_of("other").empty());
}

TEST(PodMemoryTest, CountsTheLargestInitContainerOnlyWhereTheOthersNeedLess) {
  PodMemory memory;
  memory.Add(ContainerType::kInit, {{0, 5}, {1, 2}});
  memory.Add(ContainerType::kInit, {{0, 4}});
  memory.Add(ContainerType::kMain, {{0, 3}, {1, 2}});
  memory.Add(ContainerType::kSidecar, {{1, 2}});
  EXPECT_EQ(memory.AtOnce(0), 5u);
  EXPECT_EQ(memory.AtOnce(1), 4u);
  EXPECT_EQ(memory.AtOnce(2), 0u);
}

TEST(NodeStateTest, IsMadeOutOfAnEarlierOneByWhatHappenedSince) {
  RandomChanges random(13);
  NodeState before;
  for (int i = 0; i < 200; ++i) {
    NodeState now = before;
    for (int j = random.Draw(4); j >= 0; --j) {
      now = now.With(random.Next());
    }
    ExpectSameContent(before.With(now.Since(before)), now);
    ASSERT_FALSE(testing::Test::HasFailure()) << i;
    EXPECT_TRUE(now.Since(now).Empty());
    before = now;
  }
}

TEST(NodeStateTest, KnowsWhichPodsItDoesNotShareWithAnother) {
  RandomChanges random(29);
  NodeState before;
  for (int i = 0; i < 200; ++i) {
    NodeState now = before;
    PodSet touched;
    for (int j = random.Draw(4); j >= 0; --j) {
      const Change change = random.Next();
      for (const auto& put : change.put_containers) {
        touched.insert(put.pod.uid);
      }
      touched.insert(change.remove_pods.begin(), change.remove_pods.end());
      for (const ContainerKey& key : change.remove_containers) {
        touched.insert(key.pod_uid);
      }
      now = now.With(change);
    }
    PodSet changed;
    for (const SharedText& uid : touched) {
      if (now.FindPod(uid) != before.FindPod(uid)) {
        changed.insert(uid);
      }
    }
    ASSERT_EQ(now.PodsUnlike(before), changed) << i;
    ASSERT_EQ(before.PodsUnlike(now), changed) << i;
    EXPECT_TRUE(now.PodsUnlike(now).empty());
    before = now;
  }
}

TEST(ChangeTest, IsEmptyOnlyWithoutAnyPart) {
  EXPECT_TRUE(Change().Empty());
  EXPECT_FALSE(PutSample("a").Empty());
  EXPECT_FALSE(RemoveSample("a").Empty());
  EXPECT_FALSE((Change{.remove_containers = {{"a", "b"}}}.Empty()));
  EXPECT_FALSE((Change{.add_pending_removals = {{"a", "cpu"}}}.Empty()));
  EXPECT_FALSE((Change{.done_pending_removals = {{"a", "cpu"}}}.Empty()));
}

}  // namespace
}  // namespace qrm::checkpoint::node_state_test
