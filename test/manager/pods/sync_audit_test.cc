#include "manager/pods/sync_audit.h"

#include <gtest/gtest.h>

#include "test/manager/pods/pod_events_fixture.h"

namespace qrm::manager {
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
    runtime_.SetContainers({pod}, {container});
  }
  void Audit() {
    audit_.OnSynchronized();
    io_.restart();
    io_.run();
  }

  boost::asio::io_context io_;
  test::FakeRuntime runtime_;
  LiveContainers live_;
  test::CountingAuditListener audited_;
  SyncAudit audit_{{io_, runtime_, live_, audited_}, {milliseconds(0), milliseconds(1)}};
};

TEST_F(SyncAuditTest, SynchronizesAgainForAContainerThatWasLeftOut) {
  Audit();
  EXPECT_EQ(audited_.left_out, 1);
}

TEST_F(SyncAuditTest, IsContentWhenAllAreKnown) {
  live_.Add({"uid", "main"}, {.id = "id", .pod_id = "sandbox"});
  Audit();
  EXPECT_EQ(audited_.left_out, 0);
}

TEST_F(SyncAuditTest, IgnoresAContainerOfAStaleSandbox) {  // which CRI does not list as ready
  RuntimeContainer container;
  container.id = "id";
  container.pod_id = "stale";
  runtime_.SetContainers({}, {container});
  Audit();
  EXPECT_EQ(audited_.left_out, 0);
}

TEST_F(SyncAuditTest, SynchronizesAgainForANewContainerOfAKnownName) {
  live_.Add({"uid", "main"}, {.id = "older", .pod_id = "sandbox"});
  Audit();
  EXPECT_EQ(audited_.left_out, 1);
}

TEST_F(SyncAuditTest, AsksOnceForAContainerThatIsNeverTold) {
  Audit();
  Audit();
  EXPECT_EQ(audited_.left_out, 1);
}

TEST_F(SyncAuditTest, AsksNothingAfterItStopped) {
  audit_.OnSynchronized();
  audit_.Stop();
  io_.run();
  EXPECT_EQ(audited_.left_out, 0);
}

}  // namespace
}  // namespace qrm::manager
