#include "api/http/http_connections.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/rejected.h"

namespace qrm::http_connections_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class HttpConnectionsTest : public testing::Test {
 protected:
  HttpConnections::Id Add(const std::string& peer, const std::string& name) {
    return connections_.Add(peer, [this, name] { dropped_.push_back(name); });
  }

  std::vector<std::string> dropped_;
  HttpConnections connections_{{.total = 4, .per_peer = 2, .body_bytes = 100}};
};

TEST_F(HttpConnectionsTest, NoConnectionIsClosedWhileThereIsRoom) {
  Add("a", "a1");
  Add("b", "b1");
  EXPECT_THAT(dropped_, IsEmpty());
}

TEST_F(HttpConnectionsTest, TheOldestOfAPeerWithItsShareGoes) {
  const uint64_t rejected = RejectedSoFar(Rejected::kHttpConnections);
  Add("b", "b1");
  Add("a", "a1");
  Add("a", "a2");
  Add("a", "a3");
  EXPECT_THAT(dropped_, ElementsAre("a1"));
  EXPECT_EQ(connections_.size(), 3U);
  EXPECT_EQ(RejectedSoFar(Rejected::kHttpConnections), rejected + 1);
}

TEST_F(HttpConnectionsTest, AnAnsweredConnectionOutlivesASilentOne) {
  connections_.BeginAnswer(Add("a", "a1"));
  Add("a", "a2");
  Add("a", "a3");
  EXPECT_THAT(dropped_, ElementsAre("a2"));
}

TEST_F(HttpConnectionsTest, TheOldestAnsweredConnectionIsClosedWhenAllAreAnswered) {
  connections_.BeginAnswer(Add("a", "a1"));
  connections_.BeginAnswer(Add("a", "a2"));
  Add("a", "a3");
  EXPECT_THAT(dropped_, ElementsAre("a1"));
}

TEST_F(HttpConnectionsTest, OfBodiesBeyondTheBudgetThePartThatBeganFirstGoes) {
  const uint64_t rejected = RejectedSoFar(Rejected::kHttpRequest);
  const auto kept_alive = Add("a", "a1");
  const auto unfinished = Add("b", "b1");
  EXPECT_TRUE(connections_.HoldBody(unfinished, 60));
  EXPECT_TRUE(connections_.HoldBody(kept_alive, 40));
  EXPECT_THAT(dropped_, IsEmpty());
  EXPECT_TRUE(connections_.HoldBody(kept_alive, 41));
  EXPECT_THAT(dropped_, ElementsAre("b1"));
  EXPECT_EQ(RejectedSoFar(Rejected::kHttpRequest), rejected + 1);
  EXPECT_FALSE(connections_.HoldBody(unfinished, 61)) << "it has gone";
}

TEST_F(HttpConnectionsTest, ABodyCountsUntilItsAnswerIsSentAndDoesNotGo) {
  const auto answered = Add("a", "a1");
  const auto next = Add("b", "b1");
  connections_.HoldBody(answered, 90);
  connections_.BeginAnswer(answered);
  EXPECT_FALSE(connections_.HoldBody(next, 11));
  EXPECT_THAT(dropped_, ElementsAre("b1"));
  connections_.EndAnswer(answered);
  EXPECT_TRUE(connections_.HoldBody(Add("b", "b2"), 100));
}

TEST_F(HttpConnectionsTest, ABodyThatEndsWithItsConnectionCountsNoMore) {
  const auto gone = Add("a", "a1");
  connections_.HoldBody(gone, 90);
  connections_.Remove(gone);
  EXPECT_TRUE(connections_.HoldBody(Add("a", "a2"), 100));
}

TEST_F(HttpConnectionsTest, WithoutRoomThePeerWithMostMakesIt) {
  Add("b", "b1");
  Add("a", "a1");
  Add("a", "a2");
  Add("c", "c1");
  Add("d", "d1");
  EXPECT_THAT(dropped_, ElementsAre("a1"));
}

TEST_F(HttpConnectionsTest, AConnectionIsSilentAgainAfterItsAnswer) {
  const HttpConnections::Id first = Add("a", "a1");
  connections_.BeginAnswer(first);
  connections_.BeginAnswer(Add("a", "a2"));
  connections_.EndAnswer(first);
  Add("a", "a3");
  EXPECT_THAT(dropped_, ElementsAre("a1"));
}

TEST_F(HttpConnectionsTest, AConnectionThatEndedLeavesRoom) {
  connections_.Remove(Add("a", "a1"));
  Add("a", "a2");
  Add("a", "a3");
  EXPECT_THAT(dropped_, IsEmpty());
}

}  // namespace
}  // namespace qrm::http_connections_test
