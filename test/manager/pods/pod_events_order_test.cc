// The runtime's events twice, out of order, about unknown objects, and from other writers.
#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/log.h"
#include "test/manager/pods/pod_events_fixture.h"
#include "test/support/await.h"

namespace qrm::manager::pod_events_order_test {
namespace {

using test::Container;
using test::Key;
using test::Pod;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class PodEventsOrderTest : public test::PodEventsFixture {
 protected:
  /// The log lines that `work` writes.
  template <typename Work>
  std::vector<std::string> Logged(Work work) {
    std::vector<std::string> lines;
    log::SetSink([&](log::Level, const std::string& line) { lines.push_back(line); });
    work();
    log::SetSink(nullptr);
    return lines;
  }
};

TEST_F(PodEventsOrderTest, EventsOfUnknownContainersChangeNothing) {
  events_.OnContainerStopped(Pod("x"), Container("x", "id1"));
  events_.OnContainerStarted(Pod("x"), Container("x", "id1"));
  events_.OnContainerRemoved(Pod("x"), Container("x", "id1"));
  events_.OnPodStopped(Pod("x"));
  events_.OnPodRemoved(Pod("x"));
  test::Settle(state_);
  EXPECT_THAT(live_.All(), IsEmpty());
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

TEST_F(PodEventsOrderTest, ARepeatedCreationIsAnsweredAlike) {
  const auto first = Create(Pod("web"), Container("web", "id1"));
  const auto second = Create(Pod("web"), Container("web", "id1"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_THAT(live_.All(), SizeIs(1));
}

TEST_F(PodEventsOrderTest, ACreationThatTheRuntimeUndoesKeepsItsAllocationsForTheNext) {
  const auto first = Create(Pod("web"), Container("web", "id1"));
  events_.OnContainerStopped(Pod("web"), Container("web", "id1"));
  events_.OnContainerRemoved(Pod("web"), Container("web", "id1"));
  EXPECT_FALSE(live_.Find(Key("web")).has_value());
  plugins_.ForgetCalls();
  const auto second = Create(Pod("web"), Container("web", "id2"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

TEST_F(PodEventsOrderTest, ARestartedContainersOldIdIsReportedLast) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "old")).ok());
  ASSERT_TRUE(Create(Pod("web"), Container("web", "new")).ok());
  events_.OnContainerStarted(Pod("web"), Container("web", "old"));
  EXPECT_FALSE(Live("web").started) << "only the old one has";
  events_.OnContainerStarted(Pod("web"), Container("web", "new"));
  events_.OnContainerStopped(Pod("web"), Container("web", "old"));
  events_.OnContainerRemoved(Pod("web"), Container("web", "old"));
  test::Settle(state_);
  EXPECT_EQ(Live("web").id, "new");
  EXPECT_TRUE(Live("web").started);
  EXPECT_TRUE(Known("web"));
}

TEST_F(PodEventsOrderTest, APodRemovedBeforeItsContainerIsFreedOnce) {
  events_.OnPodStarted(Pod("web"));
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  plugins_.ForgetCalls();
  events_.OnPodRemoved(Pod("web"));
  events_.OnPodRemoved(Pod("web"));
  events_.OnContainerStopped(Pod("web"), Container("web", "id1"));
  events_.OnContainerRemoved(Pod("web"), Container("web", "id1"));
  test::Settle(state_);
  EXPECT_FALSE(Known("web"));
  EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-web"));
}

TEST_F(PodEventsOrderTest, TheRemovalOfAStaleSandboxFreesNoLivePod) {
  RuntimeContainer container = Container("web", "id1");
  Synchronize({Pod("web", "sandbox-stale"), Pod("web")}, {container});
  ASSERT_TRUE(Known("web"));
  events_.OnPodRemoved(Pod("web", "sandbox-stale"));
  test::Settle(state_);
  EXPECT_TRUE(Known("web"));
}

TEST_F(PodEventsOrderTest, AStaleSandboxWithoutContainersIsNotAnAdmission) {
  Synchronize({Pod("stale")}, {});
  EXPECT_FALSE(Known("stale"));
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

TEST_F(PodEventsOrderTest, AContainerWhosePodIsNotListedIsNotAnAdmission) {
  Synchronize({}, {Container("web", "id1")});
  EXPECT_FALSE(Known("web"));
}

TEST_F(PodEventsOrderTest, OfTwoContainersWithOneNameTheRunningOneCounts) {
  std::vector<RuntimeContainer> listed = {
      Container("web", "made", RuntimeContainerState::kCreated),
      Container("web", "runs", RuntimeContainerState::kRunning)};
  for (int order = 0; order < 2; ++order) {
    Synchronize({Pod("web")}, listed);
    EXPECT_EQ(Live("web").id, "runs");
    EXPECT_TRUE(Known("web"));
    std::reverse(listed.begin(), listed.end());
  }
}

TEST_F(PodEventsOrderTest, ACreationGoesBeforeContainersThatStartedWithoutUs) {
  std::vector<std::string> order;
  journal_.on_commit = [&](const checkpoint::Change& change) {
    if (order.empty()) {
      events_.OnCreateContainer(Pod("new"), Container("new", "id9"), [](const auto&) {});
    }
    for (const auto& put : change.put_containers) {
      order.push_back(put.pod.name);
    }
  };
  Synchronize({Pod("a"), Pod("b"), Pod("c")},
              {Container("a", "id1"), Container("b", "id2"), Container("c", "id3")});
  ASSERT_TRUE(test::Await([&] { return Known("c"); }));
  test::Settle(state_);
  EXPECT_THAT(order, ElementsAre("a", "new", "b", "c"));
}

TEST_F(PodEventsOrderTest, AnotherWritersCpusAreOverruledAndSaidOnce) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  const auto lines = Logged([&] {
    for (int times = 0; times < 3; ++times) {  // as kubelet's static CPU manager every 10 s
      EXPECT_THAT(Update(Pod("web"), Container("web", "id1"), {.cpuset_cpus = "0-7"}),
                  ElementsAre(ContainerUpdate{"id1", {.cpuset_cpus = "0-1"}}));
    }
  });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr("drift corrected"));
}

TEST_F(PodEventsOrderTest, AnotherWritersMemoryNodesAreOverruled) {  // kubelet's memory manager
  test::PluginScript memory;
  memory.gives = AllocationByResource{{"memory", test::NodeMemory({{0, 1 << 20}})}};
  plugins_.Set("memory", memory);
  RuntimeContainer container = Container("web", "id1");
  container.resources.memory_limit_bytes = 1 << 20;
  ASSERT_TRUE(Create(Pod("web"), container).ok());
  EXPECT_THAT(Update(Pod("web"), container, {.cpuset_mems = "1"}),
              ElementsAre(ContainerUpdate{"id1", {.cpuset_cpus = "0-1", .cpuset_mems = "0"}}));
}

TEST_F(PodEventsOrderTest, AnotherWritersMemoryNodesStayWhereWeGaveNone) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  const auto lines = Logged([&] {
    EXPECT_THAT(
        Update(Pod("web"), Container("web", "id1"), {.cpuset_cpus = "0-1", .cpuset_mems = "1"}),
        ElementsAre(ContainerUpdate{"id1", {.cpuset_cpus = "0-1"}}));
  });
  EXPECT_THAT(lines, IsEmpty());
}

TEST_F(PodEventsOrderTest, AResizeInPlaceKeepsItsSharesAndOurCpus) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  const auto lines = Logged([&] {
    EXPECT_THAT(Update(Pod("web"), Container("web", "id1"),
                       {.cpu_shares = 4096, .cpu_quota_us = 400000, .memory_limit_bytes = 1 << 30}),
                ElementsAre(ContainerUpdate{"id1", {.cpuset_cpus = "0-1"}}));
    test::Settle(state_);  // the resize is placed after the answer
  });
  EXPECT_THAT(lines, IsEmpty());
}

TEST_F(PodEventsOrderTest, AnUpdateIsAnsweredWhileAnAdmissionIsUnderWay) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  std::promise<void> release;
  state_.Post([&] { release.get_future().wait(); });
  EXPECT_THAT(Update(Pod("web"), Container("web", "id1"), {.cpu_shares = 512}), SizeIs(1));
  release.set_value();
  test::Settle(state_);
}

}  // namespace
}  // namespace qrm::manager::pod_events_order_test
