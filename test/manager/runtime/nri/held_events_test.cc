// What is told before anybody hears.
#include "manager/runtime/nri/held_events.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/manager/runtime/nri/nri_fixture.h"

namespace qrm::manager::held_events_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RuntimePod Pod() {
  return {.uid = "web"};
}

RuntimeContainer Container() {
  return {.name = "main"};
}

TEST(HeldEventsTest, EveryEventIsHeardLaterInItsOrder) {
  HeldEvents held;
  std::vector<std::string> replies;
  const auto updates = [&](const StatusOr<std::vector<ContainerUpdate>>& answer) {
    replies.push_back(answer.ok() ? "updates" : MessageOf(answer.status()));
  };
  held.OnConnected({.version = "v1"});
  held.OnSynchronize({Pod()}, {Container()}, updates);
  held.OnPodStarted(Pod());
  held.OnCreateContainer(Pod(), Container(), [&](const StatusOr<ContainerAdjustment>& answer) {
    replies.push_back(answer.ok() ? "adjustment" : MessageOf(answer.status()));
  });
  held.OnStartContainer(Pod(), Container(),
                        [&](const Status& answer) { replies.push_back(MessageOf(answer)); });
  held.OnContainerStarted(Pod(), Container());
  held.OnUpdateContainer(Pod(), Container(), {}, updates);
  held.OnContainerStopped(Pod(), Container());
  held.OnContainerRemoved(Pod(), Container());
  held.OnPodStopped(Pod());
  held.OnPodRemoved(Pod());
  EXPECT_THAT(replies, IsEmpty());

  test::RecordedEvents events;
  held.DeliverTo(events);
  EXPECT_THAT(events.log(),
              ElementsAre("connected v1", "synchronize", "pod started web", "create main",
                          "start main", "started main", "update main", "stopped main",
                          "removed main", "pod stopped web", "pod removed web"));
  EXPECT_THAT(replies, ElementsAre("updates", "adjustment", "", "updates"));
  EXPECT_THAT(events.pods(), ElementsAre(Pod()));
  EXPECT_THAT(events.containers(), ElementsAre(Container()));
}

TEST(HeldEventsTest, WhatComesAfterwardsIsHeardAtOnce) {
  HeldEvents held;
  test::RecordedEvents events;
  held.DeliverTo(events);
  held.OnConnected({.version = "v1"});
  EXPECT_THAT(events.log(), ElementsAre("connected v1"));
  held.OnDisconnected(OkStatus());
  EXPECT_THAT(events.log(), ElementsAre("connected v1", "disconnected"));
}

TEST(HeldEventsTest, AConnectionThatEndedIsNotHeardOf) {
  HeldEvents held;
  held.OnConnected({.version = "v1"});
  held.OnPodStarted(Pod());
  held.OnDisconnected(OkStatus());
  held.OnConnected({.version = "v2"});
  test::RecordedEvents events;
  held.DeliverTo(events);
  EXPECT_THAT(events.log(), ElementsAre("connected v2"));
}

}  // namespace
}  // namespace qrm::manager::held_events_test
