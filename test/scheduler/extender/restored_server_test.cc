// qrm-scheduler when the API server's data is older than before, and when a lease or its holder is
// gone.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "test/scheduler/extender/extender_server_fixture.h"

namespace qrm::scheduler::restored_server_test {
namespace {

using testing::HasSubstr;

class RestoredServerTest : public ExtenderServerTest {
 protected:
  void PutLease(const std::string& holder, int seconds) {
    cluster_.Put(kLeases,
                 {{"metadata", {{"namespace", "qrm"}, {"name", "qrm-scheduler"}}},
                  {"spec", {{"holderIdentity", holder}, {"leaseDurationSeconds", seconds}}}});
  }
  std::string Holder() const {
    const json lease = cluster_.Find(kLeases, "qrm/qrm-scheduler");
    return lease.is_object() ? lease["spec"].value("holderIdentity", std::string()) : std::string();
  }
  std::ptrdiff_t Watches() const {
    const std::vector<std::string> requests = cluster_.requests();
    return std::count_if(requests.begin(), requests.end(), [](const std::string& request) {
      return request.find("watch=1") != std::string::npos;
    });
  }
  /// The server's version goes far beyond the current one, and the watches receive that. Otherwise
  /// a restored server could have caught up before the test looks.
  void GoFarBeyond() {
    for (int i = 0; i < 50; ++i) {
      cluster_.Put("/api/v1/things", {{"metadata", {{"name", "thing"}}}});
    }
    json pod = PodObject("unseen", 1);
    pod["metadata"]["resourceVersion"] = std::to_string(cluster_.version());
    ASSERT_TRUE(Await([&] {
      cluster_.SendBookmarks();  // again: a watch may be opened just now
      return ErrorOf(Ask("filter", {{"Pod", pod}, {"NodeNames", {"n1"}}})).empty();
    }));
  }
  static std::string ErrorOf(const json& answer) { return answer["Error"].get<std::string>(); }
  bool Fits(const std::string& pod, const std::string& node) const {
    const json answer = Filter(pod);
    return ErrorOf(answer).empty() && answer["NodeNames"] == json::array({node});
  }
};

TEST_F(RestoredServerTest, ABindingThatARestoreUndidLeavesItsRoom) {
  PutPod("a", 8);
  PutPod("b", 8);
  StartReady();
  const uint64_t before = cluster_.version();
  ASSERT_EQ(Bind("a", "n1"), "");
  GoFarBeyond();
  cluster_.RestoreTo(before);
  ASSERT_TRUE(Await([&] { return Fits("b", "n1"); }));
  EXPECT_EQ(Bind("b", "n1"), "");
  EXPECT_THAT(Bind("a", "n1"), HasSubstr("not enough fake"));
  EXPECT_EQ(NodeOf("a"), "");
  EXPECT_TRUE(CacheEqualsARebuild());
}

TEST_F(RestoredServerTest, ABindingThatARestoreUndidBeforeItWasSeenLeavesItsRoom) {
  lease_name_.clear();
  stale_after_ = std::chrono::seconds(1);
  PutPod("a", 8);
  PutPod("b", 8);
  StartReady();
  ASSERT_TRUE(Await([&] { return Watches() == 3; }));  // so that the next request is the binding
  cluster_.Refuse(1, 201);                             // it is accepted, but not stored
  ASSERT_EQ(Bind("a", "n1"), "");
  EXPECT_FALSE(Fits("b", "n1"));
  EXPECT_TRUE(Await([&] { return Fits("b", "n1"); }));
  EXPECT_TRUE(CacheEqualsARebuild());
}

TEST_F(RestoredServerTest, APodThatARestoreBroughtBackCountsAgain) {
  PutPod("a", 8);
  PutPod("b", 8);
  StartReady();
  ASSERT_EQ(Bind("a", "n1"), "");
  const uint64_t before = cluster_.version();
  cluster_.Delete(kPodsPath, "d/a");
  ASSERT_TRUE(Await([&] { return Fits("b", "n1"); }));
  GoFarBeyond();
  cluster_.RestoreTo(before);
  ASSERT_TRUE(Await([&] { return !Fits("b", "n1"); }));
  EXPECT_THAT(Bind("b", "n1"), HasSubstr("not enough fake"));
  EXPECT_TRUE(CacheEqualsARebuild());
}

TEST_F(RestoredServerTest, ACapacityThatARestoreTookBackIsNotGiven) {
  PutPod("a", 12);
  StartReady();
  const uint64_t before = cluster_.version();
  PutCapacity("n1", 12);
  ASSERT_TRUE(Await([&] { return Fits("a", "n1"); }));
  GoFarBeyond();
  cluster_.RestoreTo(before);
  ASSERT_TRUE(Await([&] { return !Fits("a", "n1"); }));
  EXPECT_THAT(Bind("a", "n1"), HasSubstr("not enough fake"));
  EXPECT_TRUE(CacheEqualsARebuild());
}

TEST_F(RestoredServerTest, AMissingLeaseIsRecreatedByTheLeader) {
  PutPod("a", 8);
  StartReady();
  const std::string holder = Holder();
  cluster_.Delete(kLeases, "qrm/qrm-scheduler");
  EXPECT_EQ(Bind("a", "n1"), "");
  EXPECT_TRUE(Await([&] { return Holder() == holder; }));
}

TEST_F(RestoredServerTest, WhatAKilledHolderBoundIsCountedBeforeTheNextOneBinds) {
  PutPod("a", 8);
  PutPod("b", 8);
  PutLease("killed", 1);
  Start();
  json pod = PodIn("a");
  pod["spec"]["nodeName"] = "n1";  // its last binding arrives while the lease runs out
  cluster_.Put(kPodsPath, pod);
  std::string error;
  ASSERT_TRUE(Await([&] {
    error = Bind("b", "n1");
    return error.find("lease") == std::string::npos &&
           error.find("has not come") == std::string::npos;
  })) << error;
  EXPECT_THAT(error, HasSubstr("not enough fake"));
  EXPECT_NE(Holder(), "killed");
}

}  // namespace
}  // namespace qrm::scheduler::restored_server_test
