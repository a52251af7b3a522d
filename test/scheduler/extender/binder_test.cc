// A binding whose answer was lost before its lease.
#include "scheduler/extender/binder.h"

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/await.h"
#include "test/support/fake_api_server.h"
#include "test/support/loop_thread.h"

namespace qrm::scheduler::binder_test {
namespace {

using test::Await;
using testing::HasSubstr;

constexpr char kPodsPath[] = "/api/v1/pods";

class BinderTest : public testing::Test {
 protected:
  BinderTest() {
    PutPod({});
    cache_->Run([](ClusterCache& now) {
      now.ReplaceNodes({{.name = "n1"}, {.name = "n2"}}, "1");
      now.ReplacePods(
          {.pods = {{.uid = "uid-a", .pod_namespace = "d", .name = "a"}}, .version = "1"});
    });
    loop_.Run([this] {
      client_.emplace(loop_.io(), server_.access(), cluster::ApiClient::Options());
      binder_ = std::make_unique<Binder>(
          Binder::Peers{loop_.io(), *client_, *cache_},
          [this] {
            return --requests_with_lease_ < 0
                       ? Status(StatusCode::kUnavailable, "the lease is gone")
                       : OkStatus();
          },
          Binder::Options{.first_repeat = std::chrono::milliseconds(1),
                          .most_repeat = std::chrono::milliseconds(10)});
    });
  }
  void TearDown() override {
    loop_.Run([this] {
      binder_.reset();
      client_.reset();
    });
  }

  void PutPod(const std::string& node) {
    nlohmann::json pod = {{"metadata", {{"namespace", "d"}, {"name", "a"}, {"uid", "uid-a"}}},
                          {"spec", {{"containers", nlohmann::json::array()}}}};
    if (!node.empty()) {
      pod["spec"]["nodeName"] = node;
    }
    server_.Put(kPodsPath, std::move(pod));
  }
  /// Asks once without success, then has no lease.
  void LoseBindingAndLease() {
    server_.Refuse(1, 500);
    EXPECT_THAT(MessageOf(Bind("n1")), HasSubstr("the lease is gone"));
  }
  void GetLeaseBack() { requests_with_lease_ = 1'000'000; }

  Status Bind(const std::string& node) {
    std::promise<Status> outcome;
    binder_->Bind({.pod_namespace = "d", .pod = "a", .uid = "uid-a", .node = node},
                  [&](const Status& status) { outcome.set_value(status); });
    return outcome.get_future().get();
  }
  std::string NodeOf() const {
    return server_.Find(kPodsPath, "d/a")
        .value(nlohmann::json::json_pointer("/spec/nodeName"), std::string());
  }
  std::string AssumedOn() {
    std::string node;
    cache_->Run([&](const ClusterCache& now) { node = now.AssumedOn("uid-a"); });
    return node;
  }

  test::FakeApiServer server_;
  const HandleRegistry handles_ = HandleRegistry();
  const std::unique_ptr<SchedulerCache> cache_ = *SchedulerCache::Make(handles_);
  std::atomic<int> requests_with_lease_{1};
  test::LoopThread loop_;
  std::optional<cluster::ApiClient> client_;
  std::unique_ptr<Binder> binder_;
};

TEST_F(BinderTest, ABindingThatWasLostBeforeTheLeaseIsAskedForWhenItIsBack) {
  LoseBindingAndLease();
  GetLeaseBack();
  EXPECT_TRUE(Await([&] { return NodeOf() == "n1"; }));
  EXPECT_TRUE(Await([&] { return binder_->in_flight() == 0; }));
}

TEST_F(BinderTest, APodCountsWhileALostBindingCannotBeAskedFor) {
  LoseBindingAndLease();
  EXPECT_EQ(AssumedOn(), "n1");
  EXPECT_EQ(NodeOf(), "");
}

TEST_F(BinderTest, APodThatTheNextHolderBoundElsewhereLeavesItsRoomWhenTheLeaseIsBack) {
  LoseBindingAndLease();
  PutPod("n2");
  GetLeaseBack();
  EXPECT_TRUE(Await([&] { return AssumedOn().empty(); }));
  EXPECT_EQ(NodeOf(), "n2");
}

}  // namespace
}  // namespace qrm::scheduler::binder_test
