#include "manager/pods/sync_audit.h"

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "test/manager/pods/pod_events_fixture.h"
#include "test/support/fake_snapshots.h"

namespace qrm::manager::sync_audit_test {
namespace {

using std::chrono::milliseconds;

// A runtime with one container, and an audit at once and a moment later.
class SyncAuditTest : public testing::Test {
 protected:
  SyncAuditTest() {
    RuntimePod pod{.id = "sandbox", .uid = "uid", .name = "web"};
    RuntimeContainer container;
    container.id = "id";
    container.pod_id = "sandbox";
    container.name = "main";
    container.state = RuntimeContainerState::kRunning;
    runtime_.SetContainers({pod}, {container});
  }
  void LetItBeKnown() { live_.Add(key_, known_); }
  void PutOnRecord(const std::string& uid) {
    checkpoint::Change change;
    change.put_containers.push_back({{.uid = uid}, "main", {}});
    state_.Apply(change);
  }
  /// Lists within a time that is long for the periods of this test, and short for the test.
  int ListsSoFar() {
    io_.restart();
    io_.run_for(milliseconds(50));
    return audited_.listed;
  }
  /// The next list, and no more.
  void AuditOnce() {
    const int before = audited_.listed;
    io_.restart();
    while (audited_.listed == before) {
      io_.run_one();
    }
  }
  void Audit() {
    audit_.OnSynchronized();
    io_.restart();
    io_.run();
  }

  const ContainerKey key_{"uid", "main"};
  const LiveContainer known_{.id = "id", .pod_id = "sandbox"};
  boost::asio::io_context io_;
  test::FakeRuntime runtime_;
  LiveContainers live_;
  test::FakeSnapshots state_;
  test::CountingAuditListener audited_;
  SyncAudit audit_{{io_, runtime_, state_, live_, audited_},
                   {.delays = {milliseconds(0), milliseconds(1)},
                    .period = milliseconds(5),
                    .soon = milliseconds(1)}};
};

TEST_F(SyncAuditTest, SynchronizesAgainForAContainerThatWasLeftOut) {
  Audit();
  EXPECT_EQ(audited_.left_out, 1);
}

TEST_F(SyncAuditTest, KeepsTheConnectionForAContainerThatEndsWhileItIsListed) {
  audit_.OnSynchronized();
  AuditOnce();
  runtime_.SetContainers({}, {});
  ListsSoFar();
  EXPECT_EQ(audited_.left_out, 0);
}

TEST_F(SyncAuditTest, IsContentWhenAllAreKnown) {
  LetItBeKnown();
  Audit();
  EXPECT_EQ(audited_.left_out, 0);
}

TEST_F(SyncAuditTest, IgnoresAContainerOfAStaleSandbox) {  // which CRI does not list as ready
  RuntimeContainer container;
  container.id = "id";
  container.pod_id = "stale";
  container.state = RuntimeContainerState::kRunning;
  runtime_.SetContainers({}, {container});
  Audit();
  EXPECT_EQ(audited_.left_out, 0);
}

TEST_F(SyncAuditTest, SynchronizesAgainForANewContainerOfAKnownName) {
  live_.Add({"uid", "main"}, {.id = "older", .pod_id = "sandbox"});
  Audit();
  EXPECT_EQ(audited_.left_out, 1);
}

TEST_F(SyncAuditTest, FollowsAContainerThatOnlyCriReports) {
  audited_.on_left_out_again = [this](const RuntimeContainer& container) {
    live_.AddUntold(key_, {.id = container.id, .pod_id = container.pod_id});
  };
  Audit();
  EXPECT_FALSE(live_.Find(key_).has_value()) << "the next synchronization may report it";
  Audit();
  EXPECT_EQ(audited_.left_out, 1);
  EXPECT_TRUE(live_.Find(key_).has_value());
}

TEST_F(SyncAuditTest, IgnoresAContainerThatHasEnded) {
  RuntimeContainer ended;
  ended.id = "id";
  ended.pod_id = "sandbox";
  ended.state = RuntimeContainerState::kStopped;
  runtime_.SetContainers({{.id = "sandbox", .uid = "uid"}}, {ended});
  Audit();
  EXPECT_EQ(audited_.left_out, 0);
}

TEST_F(SyncAuditTest, ListsNoMoreWhenAllOnRecordWasReportedByEvents) {
  LetItBeKnown();
  live_.AddPod("uid", "sandbox");
  PutOnRecord("uid");
  Audit();
  EXPECT_EQ(audited_.listed, 2) << "nothing is left to do";
}

TEST_F(SyncAuditTest, ListsNoMoreForPodsThatAreNotOnRecord) {
  live_.Reset({{"uid", {"sandbox"}}}, {{key_, known_}});
  Audit();
  EXPECT_EQ(audited_.listed, 2);
}

TEST_F(SyncAuditTest, ListsEveryPeriodWhilePodsAreOnRecordThatNoEventMentioned) {
  live_.Reset({{"uid", {"sandbox"}}}, {});
  PutOnRecord("uid");
  audit_.OnSynchronized();
  EXPECT_GT(ListsSoFar(), 2);
  live_.MarkStopped("uid", "sandbox");
  ListsSoFar();
  const int listed = audited_.listed;
  EXPECT_EQ(ListsSoFar(), listed) << "it is known to have ended";
}

TEST_F(SyncAuditTest, ListsOnceMoreWhenSomethingMayHaveEnded) {
  LetItBeKnown();
  Audit();
  audit_.LookSoon();
  EXPECT_EQ(ListsSoFar(), 3);
}

TEST_F(SyncAuditTest, ListsAgainUntilMissingContainersAreConfirmed) {
  Audit();
  audited_.verdict = ListVerdict::kUnconfirmed;
  audit_.LookSoon();
  EXPECT_GT(ListsSoFar(), 4);
}

TEST_F(SyncAuditTest, ListsNothingWhileItIsDisconnected) {
  LetItBeKnown();
  Audit();
  audit_.OnDisconnected();
  audit_.LookSoon();
  EXPECT_EQ(ListsSoFar(), 2);
}

TEST_F(SyncAuditTest, AsksNothingAfterItStopped) {
  audit_.OnSynchronized();
  audit_.Stop();
  io_.run();
  EXPECT_EQ(audited_.left_out, 0);
}

}  // namespace
}  // namespace qrm::manager::sync_audit_test
