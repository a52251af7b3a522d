// The Pods API over a real socket: with a kubelet that runs, is absent, late or restarting, or
// lies.
#include "manager/kubelet/pods_api_client.h"

#include <future>
#include <memory>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/proto/core/v1/pod.pb.h"
#include "manager/demand/exact_source.h"
#include "test/support/await.h"
#include "test/support/loop_thread.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::pods_api_client_test {
namespace {

using test::Await;
using test::PodMessage;
using test::ScriptedKubelet;
using testing::ElementsAre;
using testing::Pair;

constexpr int kAdded = 1;
constexpr int kModified = 2;
constexpr int kDeleted = 3;

RuntimePod Pod(const std::string& name) {
  return {.id = "sandbox", .uid = "uid-" + name, .pod_namespace = "default", .name = name};
}

RuntimeContainer Container() {
  RuntimeContainer container;
  container.id = "id";
  container.name = "main";
  container.resources.cpu_shares = 1024;
  return container;
}

class PodsApiTest : public testing::Test {
 protected:
  PodsApiTest() { client_.Start(); }
  void TearDown() override {
    loop_.Run([this] { client_.Stop(); });
    loop_.Stop();
  }

  void StartKubelet() { kubelet_ = std::make_unique<ScriptedKubelet>(socket_); }
  void StartWith(const std::string& name, const std::string& cpus) {
    StartKubelet();
    kubelet_->Put("uid-" + name, PodMessage("uid-" + name, name, cpus));
  }
  bool AwaitSync() {
    return Await([this] { return client_.synced(); });
  }
  /// The CPUs that `pod` requests by its spec; 0 when that is unknown.
  double CpusOf(const std::string& pod) {
    const PodSpecPtr spec = client_.Find("uid-" + pod);
    return spec == nullptr ? 0 : spec->containers.at(0).requests.at("cpu");
  }
  bool AwaitCpus(const std::string& pod, double cpus) {
    return Await([&] { return CpusOf(pod) == cpus; });
  }
  placement::ContainerDemand DemandOf(const std::string& pod,
                                      std::chrono::milliseconds wait = std::chrono::seconds(10)) {
    std::promise<StatusOr<placement::ContainerDemand>> told;
    ExactSource source(loop_.io(), {&client_}, CgroupEstimate(), wait);
    source.Find(
        Pod(pod), Container(), DeadlineAfter(std::chrono::seconds(20)),
        [&](StatusOr<placement::ContainerDemand> demand) { told.set_value(std::move(demand)); });
    placement::ContainerDemand demand = *told.get_future().get();
    loop_.Run([&] { source.Stop(); });
    return demand;
  }

  const test::TempDir dir_;
  const std::string socket_ = dir_ / "pods-api.sock";
  std::unique_ptr<ScriptedKubelet> kubelet_;
  test::LoopThread loop_;
  PodsApiClient client_{loop_.io(),
                        {.socket = socket_,
                         .lookup_timeout = std::chrono::seconds(5),
                         .first_backoff = std::chrono::milliseconds(10),
                         .most_backoff = std::chrono::milliseconds(50)}};
};

TEST_F(PodsApiTest, KnowsWhatTheInitialSyncReports) {
  StartWith("web", "1500m");
  ASSERT_TRUE(AwaitSync());
  const placement::ContainerDemand demand = DemandOf("web");
  EXPECT_THAT(*demand.requests, ElementsAre(Pair("cpu", 1.5)));
  EXPECT_EQ(demand.source, "pods-api");
  EXPECT_EQ(kubelet_->lookups(), 0) << "what is known is answered without a call";
}

TEST_F(PodsApiTest, FollowsChanges) {
  StartWith("web", "1");
  ASSERT_TRUE(AwaitSync());
  kubelet_->Send(kAdded, PodMessage("uid-new", "new", "3"));
  EXPECT_TRUE(AwaitCpus("new", 3));
  kubelet_->Send(kModified, PodMessage("uid-web", "web", "2"));
  EXPECT_TRUE(AwaitCpus("web", 2));
  kubelet_->Send(kDeleted, PodMessage("uid-web", "web", "2"));
  EXPECT_TRUE(AwaitCpus("web", 0));
}

TEST_F(PodsApiTest, AsksForAPodThatTheWatchHasNotReported) {
  StartKubelet();
  ASSERT_TRUE(AwaitSync());
  kubelet_->Put("uid-web", PodMessage("uid-web", "web", "4"));
  EXPECT_THAT(*DemandOf("web").requests, ElementsAre(Pair("cpu", 4)));
  EXPECT_EQ(kubelet_->lookups(), 1);
}

TEST_F(PodsApiTest, EstimatesAtOnceWhereThereIsNoKubelet) {
  ASSERT_TRUE(Await([this] { return DemandOf("web").source == "estimate"; }));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(DemandOf("web").source, "estimate");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5))
      << "no admission waits for a kubelet that is not running";
}

TEST_F(PodsApiTest, EstimatesWhenKubeletDoesNotKnowThePod) {
  StartKubelet();
  ASSERT_TRUE(AwaitSync());
  EXPECT_EQ(DemandOf("web").source, "estimate");
}

TEST_F(PodsApiTest, FindsAKubeletThatComesLate) {
  ASSERT_TRUE(Await([this] { return DemandOf("web").source == "estimate"; }));
  EXPECT_EQ(client_.lost(), "") << "it was never there";
  StartWith("web", "2");
  EXPECT_TRUE(AwaitCpus("web", 2));
  EXPECT_TRUE(AwaitSync());
}

TEST_F(PodsApiTest, WaitsNoLongerThanAllowedForASyncThatIsLate) {
  StartKubelet();
  kubelet_->HoldSync();
  kubelet_->Put("uid-web", PodMessage("uid-web", "web", "2"));
  ASSERT_TRUE(Await([this] { return kubelet_->watches() > 0; }));
  EXPECT_EQ(DemandOf("web", std::chrono::milliseconds(1)).source, "estimate");
  kubelet_->Sync();
  EXPECT_TRUE(AwaitCpus("web", 2));
}

TEST_F(PodsApiTest, KeepsSpecsWhileKubeletRestartsAndForgetsThoseGoneMeanwhile) {
  StartWith("web", "1");
  kubelet_->Put("uid-gone", PodMessage("uid-gone", "gone", "1"));
  ASSERT_TRUE(AwaitSync());
  EXPECT_EQ(client_.lost(), "");
  kubelet_.reset();
  ASSERT_TRUE(Await([this] { return !client_.synced(); }));
  EXPECT_THAT(client_.lost(), testing::HasSubstr("does not answer, as it did before"));
  EXPECT_EQ(CpusOf("gone"), 1);
  StartWith("web", "2");
  EXPECT_TRUE(AwaitCpus("web", 2));
  EXPECT_TRUE(AwaitCpus("gone", 0));
}

TEST_F(PodsApiTest, WatchesAgainWhenItIsCutOffForSlowness) {
  StartWith("web", "1");
  ASSERT_TRUE(AwaitSync());
  kubelet_->Drop(Errorf(StatusCode::kResourceExhausted, "watch client channel closed"));
  EXPECT_TRUE(Await([this] { return kubelet_->watches() > 1 && client_.synced(); }));
}

TEST_F(PodsApiTest, LeavesOutWhatIsNotAPodAndUnknownEvents) {
  StartKubelet();
  ASSERT_TRUE(AwaitSync());
  kubelet_->Send(kAdded, "\xff\xff no pod");
  kubelet_->Send(kAdded, "");
  kubelet_->Send(kAdded, PodMessage("uid-odd", "odd", "many"));
  kubelet_->Send(kAdded, PodMessage("", "nobody", "1"));
  kubelet_->Send(kDeleted, "\xff");
  kubelet_->Send(77, PodMessage("uid-late", "late", "1"));
  kubelet_->Send(kAdded, PodMessage("uid-web", "web", "2"));
  EXPECT_TRUE(AwaitCpus("web", 2));
  EXPECT_EQ(CpusOf("odd"), 0);
  EXPECT_EQ(CpusOf("late"), 0);
  EXPECT_EQ(kubelet_->watches(), 1) << "none of it ends the watch";
}

TEST_F(PodsApiTest, SurvivesAMessageThatIsTooBig) {
  StartWith("web", "2");
  ASSERT_TRUE(AwaitSync());
  kubelet_->Send(kAdded, std::string(std::size_t{17} << 20, 'x'));
  EXPECT_TRUE(Await([this] { return kubelet_->watches() > 1 && client_.synced(); }));
  EXPECT_EQ(CpusOf("web"), 2);
}

TEST_F(PodsApiTest, DoesNotBelieveASpecOfAnotherPod) {
  StartKubelet();
  kubelet_->Put("uid-web", PodMessage("uid-web", "somebody-else", "64"));
  ASSERT_TRUE(AwaitSync());
  EXPECT_EQ(DemandOf("web").source, "estimate");
  kubelet_->Put("uid-new", PodMessage("uid-other", "new", "64"));
  EXPECT_EQ(DemandOf("new").source, "estimate");
  EXPECT_EQ(client_.Find("uid-other"), nullptr) << "asked for one pod, it reported another";
}

TEST_F(PodsApiTest, JoinsAStaticPodWithItsMirror) {
  ::k8s::io::api::core::v1::Pod mirror;
  ASSERT_TRUE(mirror.ParseFromString(PodMessage("uid-of-mirror", "web", "2")));
  auto& annotations = *mirror.mutable_metadata()->mutable_annotations();
  annotations["kubernetes.io/config.hash"] = "uid-web";
  annotations["kubernetes.io/config.mirror"] = "uid-web";
  ::k8s::io::api::core::v1::Pod claims = mirror;
  claims.mutable_metadata()->set_uid("uid-other");
  claims.mutable_metadata()->set_name("claims");
  StartKubelet();
  kubelet_->Put("uid-of-mirror", mirror.SerializeAsString());
  kubelet_->Put("uid-other", claims.SerializeAsString());
  ASSERT_TRUE(AwaitSync());
  EXPECT_THAT(*DemandOf("web").requests, ElementsAre(Pair("cpu", 2)));
}

}  // namespace
}  // namespace qrm::manager::pods_api_client_test
