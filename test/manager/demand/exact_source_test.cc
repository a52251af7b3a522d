// Specs, separate from their transports: how they are read, kept and preferred.
#include "manager/demand/exact_source.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/http/https_url.h"
#include "api/proto/core/v1/pod.pb.h"
#include "manager/demand/pod_spec.h"
#include "manager/demand/spec_cache.h"
#include "manager/demand/spec_source.h"
#include "manager/kubelet/pod_list.h"

namespace qrm::manager::exact_source_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

PodSpec Spec(const std::string& uid, const std::string& name = "web", double cpus = 2) {
  return {.uid = uid,
          .pod_namespace = "default",
          .name = name,
          .qos_class = "Burstable",
          .containers = {{.name = "main", .requests = {{"cpu", cpus}}}}};
}

TEST(PodListTest, ReadsPodsAsKubeletListsThem) {
  const StatusOr<PodList> list = ParsePodList(R"({"kind": "PodList", "apiVersion": "v1", "items": [{
    "metadata": {"name": "web", "namespace": "default", "uid": "u1",
      "annotations": {"kubernetes.io/config.hash": "hash", "kubernetes.io/config.mirror": "hash"},
      "ownerReferences": [{"kind": "Other"}, {"kind": "DaemonSet", "controller": true}]},
    "spec": {
      "priorityClassName": "high", "priority": 9000, "runtimeClassName": "kata",
      "initContainers": [{"name": "proxy", "restartPolicy": "Always"}],
      "containers": [{"name": "main", "resources": {
        "requests": {"cpu": "500m", "memory": "1Gi", "example.com/nic": 2}}}],
      "ephemeralContainers": [{"name": "debug"}]}}]})");
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->specs.size(), 1u);
  const PodSpec& spec = list->specs[0];
  EXPECT_EQ(spec.static_uid, "hash");
  EXPECT_EQ(spec.controller_kind, "DaemonSet");
  EXPECT_EQ(spec.priority_class, "high");
  EXPECT_EQ(spec.priority, 9000);
  EXPECT_EQ(spec.runtime_class, "kata");
  EXPECT_EQ(spec.qos_class, "Burstable");
  ASSERT_EQ(spec.containers.size(), 3u);
  EXPECT_EQ(spec.containers[0].kind, PodContainer::Kind::kSidecar);
  EXPECT_THAT(spec.containers[1].requests,
              ElementsAre(Pair("cpu", 0.5), Pair("example.com/nic", 2), Pair("memory", 1 << 30)));
}

TEST(PodListTest, LeavesOutPodsThatCannotBeUsedAndSaysWhy) {
  const StatusOr<PodList> list = ParsePodList(R"({"kind": "PodList", "items": [
    7, null, {"metadata": [], "spec": "x"},
    {"metadata": {"name": "odd", "namespace": "default", "uid": "u0"},
     "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": {}}}}]}},
    {"metadata": {"name": "web", "namespace": "default", "uid": "u1"},
     "spec": {"containers": [{"name": "main"}]}}]})");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->specs.size(), 1u);
  ASSERT_EQ(list->unusable.size(), 4u);
  EXPECT_THAT(MessageOf(list->unusable[3]), HasSubstr("default/odd (u0): container main"));
}

TEST(PodListTest, RejectsWhatIsNotAPodList) {
  for (const char* text : {"", "[]", "{}", "null", "{\"kind\": \"PodList\", \"items\": 3}",
                           "{\"kind\": \"Status\"}", "<html>", "{\"kind\": \"PodList\""}) {
    EXPECT_EQ(ParsePodList(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_TRUE(ParsePodList(R"({"kind": "PodList", "items": null})").ok());
}

TEST(PodListTest, RejectsNestingThatWouldFillTheStack) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  const Status status =
      ParsePodList(R"({"kind": "PodList", "items": [{"metadata": {"annotations": {"a": )" + deep +
                   "}}}]}")
          .status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("nested more than 64 deep"));
}

TEST(PodListTest, RejectsMorePodsThanANodeHas) {
  std::string pods = "{}";
  for (int i = 0; i < 20'000; ++i) {
    pods += ",{}";
  }
  EXPECT_THAT(MessageOf(ParsePodList(R"({"kind": "PodList", "items": [)" + pods + "]}").status()),
              HasSubstr("the answer has 20001 pods, more than 10000"));
}

TEST(PodMessageTest, ReadsKubernetesOwnEncoding) {
  ::k8s::io::api::core::v1::Pod pod;
  pod.mutable_metadata()->set_uid("u1");
  pod.mutable_metadata()->set_namespace_("default");
  pod.mutable_metadata()->set_name("web");
  auto& owner = *pod.mutable_metadata()->add_owner_references();
  owner.set_kind("DaemonSet");
  owner.set_controller(true);
  pod.mutable_spec()->set_priority_class_name("high");
  pod.mutable_spec()->set_priority(-1);
  pod.mutable_spec()->add_init_containers()->set_name("setup");
  auto& container = *pod.mutable_spec()->add_containers();
  container.set_name("main");
  (*container.mutable_resources()->mutable_limits())["memory"].set_string("1Gi");
  pod.mutable_spec()->add_ephemeral_containers()->mutable_common()->set_name("debug");
  const StatusOr<PodSpec> spec = ParsePodMessage(pod.SerializeAsString());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->controller_kind, "DaemonSet");
  EXPECT_EQ(spec->priority_class, "high");
  EXPECT_EQ(spec->priority, -1);
  ASSERT_EQ(spec->containers.size(), 3u);
  EXPECT_THAT(spec->containers[1].requests, ElementsAre(Pair("memory", 1 << 30)));
  EXPECT_EQ(UidOfPodMessage(pod.SerializeAsString()), "u1");
}

// Bytes as the Go encoder of Kubernetes writes them, with fields that we do not read between ours.
TEST(PodMessageTest, SkipsTheFieldsOfAPodThatItDoesNotRead) {
  std::string bytes = "\x0a\x17";       // metadata, 23 bytes
  bytes += "\x0a\x03web";               // name
  bytes += std::string("\x12\x00", 2);  // generateName
  bytes +=
      "\x1a\x07"
      "default";          // namespace
  bytes += "\x2a\x02u1";  // uid
  bytes +=
      "\x32\x01"
      "9";              // resourceVersion
  bytes += "\x12\x1f";  // spec, 31 bytes
  bytes +=
      "\x12\x16\x0a\x04main\x12\x03img"
      "\x42\x09"
      "\x0a\x07\x0a\x03"
      "cpu";                            // container
  bytes += std::string("\x12\x00", 2);  // its limit, an empty quantity
  bytes +=
      "\x1a\x05"
      "Never";  // restartPolicy
  const Status status = ParsePodMessage(bytes).status();
  EXPECT_THAT(MessageOf(status),
              HasSubstr("default/web (u1): container main: cannot read quantity"));
}

// Kubernetes accepts any bytes for an annotation's value from clients that send protobuf.
TEST(PodMessageTest, APodWhoseAnnotationIsNotTextIsRejectedButHasItsUid) {
  const std::string bytes =
      "\x0a\x0f"
      "\x2a\x02u1"
      "\x62\x09\x0a\x04note\x12\x01\xff";
  EXPECT_EQ(ParsePodMessage(bytes).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(UidOfPodMessage(bytes), "u1");
}

TEST(PodMessageTest, RejectsBytesThatAreNoPod) {
  EXPECT_EQ(ParsePodMessage("\xff\xff").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParsePodMessage("").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(UidOfPodMessage("\xff"), "");
}

TEST(SpecCacheTest, FindsAMirrorByWhatKubeletRuns) {
  SpecCache cache;
  PodSpec mirror = Spec("mirror", "static");
  mirror.static_uid = "hash";
  ASSERT_TRUE(cache.Put(mirror));
  EXPECT_EQ(cache.FindMirror("hash", "default", "static")->uid, "mirror");
  EXPECT_EQ(cache.FindMirror("hash", "default", "other"), nullptr);
  EXPECT_EQ(cache.FindMirror("hash", "other", "static"), nullptr);
  EXPECT_EQ(cache.Find("mirror")->name, "static");
  EXPECT_EQ(cache.Find("hash"), nullptr);
  cache.Remove("mirror");
  EXPECT_EQ(cache.FindMirror("hash", "default", "static"), nullptr);
}

TEST(SpecCacheTest, NoPodBlocksAMirror) {
  SpecCache cache;
  for (const char* name : {"before", "static", "after"}) {
    PodSpec claims = Spec(std::string("uid-") + name, name);
    claims.static_uid = "hash";
    ASSERT_TRUE(cache.Put(claims));
  }
  EXPECT_EQ(cache.FindMirror("hash", "default", "static")->uid, "uid-static");
  cache.Remove("uid-after");
  EXPECT_EQ(cache.FindMirror("hash", "default", "static")->uid, "uid-static");
}

TEST(SpecCacheTest, ForgetsWhatASyncDoesNotReportAgain) {
  SpecCache cache;
  cache.Replace({Spec("a"), Spec("b")});
  cache.BeginSync();
  ASSERT_TRUE(cache.Put(Spec("b")));
  EXPECT_NE(cache.Find("a"), nullptr) << "until the sync is complete";
  cache.EndSync();
  EXPECT_EQ(cache.Find("a"), nullptr);
  EXPECT_NE(cache.Find("b"), nullptr);
}

TEST(SpecCacheTest, ReportsWhichPodsAreGone) {
  std::vector<std::string> gone;
  SpecCache cache([&](const std::string& uid) { gone.push_back(uid); });
  cache.Replace({Spec("a"), Spec("b"), Spec("c")});
  ASSERT_TRUE(cache.Put(Spec("a"))) << "it has changed";
  cache.Remove("b");
  cache.Replace({Spec("a")});
  EXPECT_THAT(gone, testing::ElementsAre("b", "c"));
}

TEST(SpecCacheTest, BelievesInABoundedNumberOfPods) {
  SpecCache cache;
  for (std::size_t i = 0; i < SpecCache::kMaxPods; ++i) {
    ASSERT_TRUE(cache.Put(Spec(std::to_string(i))));
  }
  EXPECT_FALSE(cache.Put(Spec("one-more")));
  EXPECT_TRUE(cache.Put(Spec("0"))) << "a known one may change";
}

// Counts the requests that were notified when the lookup ended.
class SpecCacheLookupTest : public testing::Test {
 protected:
  void AfterLooking(const std::string& uid, std::chrono::hours limit = std::chrono::hours(1)) {
    cache_.AfterLooking(uid, DeadlineAfter(limit), [this] { ++told_; });
  }

  SpecCache cache_;
  int told_ = 0;
};

TEST_F(SpecCacheLookupTest, ReportsAtOnceWhenNoLookupRuns) {
  cache_.SetSettled();
  AfterLooking("a");
  EXPECT_EQ(told_, 1);
}

TEST_F(SpecCacheLookupTest, ReportsOnceWhenTheLookupEnds) {
  cache_.SetSettled();
  ASSERT_TRUE(cache_.BeginLookup("a"));
  EXPECT_FALSE(cache_.BeginLookup("a"));
  ASSERT_TRUE(cache_.BeginLookup("b"));
  AfterLooking("a");
  cache_.EndLookup("b");
  EXPECT_EQ(told_, 0) << "another pod";
  cache_.EndLookup("a");
  cache_.EndLookup("a");
  EXPECT_EQ(told_, 1);
}

TEST_F(SpecCacheLookupTest, LooksForEveryPodUntilItIsSettled) {
  ASSERT_TRUE(cache_.BeginLookup("a"));
  AfterLooking("a");
  AfterLooking("b");
  cache_.SetSettled();
  EXPECT_EQ(told_, 1) << "a is looked for by itself";
  cache_.EndLookup("a");
  EXPECT_EQ(told_, 2);
}

TEST_F(SpecCacheLookupTest, DropsRequestsWhoseDeadlineHasPassed) {
  AfterLooking("a", std::chrono::hours(-1));
  AfterLooking("a");
  cache_.SetSettled();
  EXPECT_EQ(told_, 1) << "requests before a lookup that never ends would fill the memory";
}

/// Knows the given specs, at once or when asked, and looks as long as configured.
class FakeSpecSource final : public SpecSource {
 public:
  explicit FakeSpecSource(std::string name) : name_(std::move(name)) {}

  std::string name() const override { return name_; }
  PodSpecPtr Find(const std::string& uid) const override {
    return known != nullptr && known->uid == uid ? known : nullptr;
  }
  uint64_t revision() const override { return 0; }
  void Prefetch(const std::string&) override {
    ++prefetches;
    known = found != nullptr ? found : known;
  }
  void AfterLooking(const std::string&, Deadline, std::function<void()> done) override {
    if (looks) {
      waiting_.push_back(std::move(done));
    } else {
      done();
    }
  }
  void EndLooking(PodSpecPtr spec = nullptr) {
    known = std::move(spec);
    looks = false;
    for (const auto& done : std::exchange(waiting_, {})) {
      done();
    }
  }

  PodSpecPtr known;
  PodSpecPtr found;
  bool looks = false;
  int prefetches = 0;

 private:
  const std::string name_;
  std::vector<std::function<void()>> waiting_;
};

class ExactSourceTest : public testing::Test {
 protected:
  /// Asks, and runs the I/O loop as long as it has work.
  std::string Find(const std::string& container = "main", const std::string& uid = "uid") {
    RuntimePod pod = pod_;
    pod.uid = uid;
    RuntimeContainer created;
    created.name = container;
    created.resources.cpu_shares = 1024;
    answered_.clear();
    source_.Find(pod, created, DeadlineAfter(std::chrono::hours(1)), [this](const auto& demand) {
      answered_.push_back(demand->container + " " + demand->source);
      latest_ = *demand;
    });
    Poll();
    return answered_.empty() ? "nothing yet" : answered_.front();
  }
  void Poll() {
    io_.restart();
    io_.poll();
  }
  static PodSpecPtr Known(double cpus, const std::string& uid = "uid") {
    return std::make_shared<const PodSpec>(Spec(uid, "web", cpus));
  }
  void BothLook() { pods_api_.looks = kubelet_.looks = true; }

  const RuntimePod pod_{.id = "sandbox", .uid = "uid", .pod_namespace = "default", .name = "web"};
  boost::asio::io_context io_;
  FakeSpecSource pods_api_{"pods-api"};
  FakeSpecSource kubelet_{"kubelet"};
  std::vector<std::string> answered_;
  placement::ContainerDemand latest_;
  ExactSource source_{io_, {&pods_api_, &kubelet_}, CgroupEstimate(), std::chrono::hours(1)};
};

TEST_F(ExactSourceTest, PrefersThePodsApiThenKubeletsListThenTheEstimate) {
  EXPECT_EQ(Find(), "main estimate");
  kubelet_.found = Known(3);
  EXPECT_EQ(Find(), "main kubelet");
  pods_api_.known = Known(2);
  EXPECT_EQ(Find(), "main pods-api");
  EXPECT_THAT(*latest_.requests, ElementsAre(Pair("cpu", 2)));
}

TEST_F(ExactSourceTest, EstimatesWithinTheCallWhereNoSourceCanLook) {
  AnnouncedPods announced;
  ExactSource source(io_, {&announced}, CgroupEstimate(), std::chrono::hours(1));
  const auto find = [&] {
    std::string from;
    source.Find(pod_, {.id = "main", .name = "main"}, DeadlineAfter(std::chrono::hours(1)),
                [&from](const auto& demand) { from = demand->source; });
    return from;  // the loop has not run
  };
  EXPECT_EQ(find(), "estimate");
  announced.Add(Spec("uid", "web", 2));
  EXPECT_EQ(find(), "announced");
}

TEST_F(ExactSourceTest, AsksNoSourceForWhatIsKnown) {
  pods_api_.known = Known(2);
  Find();
  source_.Prefetch(pod_);
  EXPECT_EQ(pods_api_.prefetches, 0);
  EXPECT_EQ(kubelet_.prefetches, 0);
}

TEST_F(ExactSourceTest, BeginsToLookBeforeTheContainerIsCreated) {
  source_.Prefetch(pod_);
  EXPECT_EQ(pods_api_.prefetches, 1);
  EXPECT_EQ(kubelet_.prefetches, 1);
}

TEST_F(ExactSourceTest, LooksAgainForAContainerThatTheSpecDoesNotHave) {
  pods_api_.known = Known(2);
  EXPECT_EQ(Find("debug"), "debug estimate");
  EXPECT_EQ(pods_api_.prefetches, 1);
}

TEST_F(ExactSourceTest, AnswersWhenTheBestSourceThatKnowsHasLooked) {
  BothLook();
  EXPECT_EQ(Find(), "nothing yet");
  kubelet_.EndLooking(Known(3));
  Poll();
  EXPECT_THAT(answered_, IsEmpty()) << "the Pods API may know something better";
  pods_api_.EndLooking();
  Poll();
  EXPECT_THAT(answered_, ElementsAre("main kubelet"));
}

TEST_F(ExactSourceTest, WaitsForNoOtherWhenTheBestSourceKnows) {
  BothLook();
  EXPECT_EQ(Find(), "nothing yet");
  pods_api_.EndLooking(Known(2));
  Poll();
  EXPECT_THAT(answered_, ElementsAre("main pods-api"));
}

TEST_F(ExactSourceTest, EstimatesWhenNoSourceAnswersInTime) {
  BothLook();
  ExactSource hasty(io_, {&pods_api_, &kubelet_}, CgroupEstimate(), std::chrono::milliseconds(1));
  RuntimeContainer created;
  created.name = "main";
  std::string from;
  hasty.Find(pod_, created, DeadlineAfter(std::chrono::hours(1)),
             [&](const auto& demand) { from = demand->source; });
  EXPECT_EQ(from, "") << "not on the caller's thread";
  io_.run();
  EXPECT_EQ(from, "estimate");
  pods_api_.EndLooking(Known(2));
  Poll();
  EXPECT_EQ(from, "estimate") << "reported once";
}

TEST_F(ExactSourceTest, AnswersAboutOnePodInTheOrderOfTheQuestions) {
  pods_api_.looks = true;
  EXPECT_EQ(Find("setup"), "nothing yet");
  pods_api_.known = Known(2);
  EXPECT_EQ(Find("main"), "nothing yet") << "known by now, but behind setup";
  pods_api_.EndLooking(Known(2));
  Poll();
  EXPECT_THAT(answered_, ElementsAre("setup estimate", "main pods-api"));
}

TEST_F(ExactSourceTest, AnswersAboutOtherPodsMeanwhile) {
  BothLook();
  EXPECT_EQ(Find(), "nothing yet");
  pods_api_.known = Known(2, "uid-other");
  EXPECT_EQ(Find("main", "uid-other"), "main pods-api");
}

TEST_F(ExactSourceTest, AnswersNothingAfterItStopped) {
  pods_api_.looks = true;
  EXPECT_EQ(Find(), "nothing yet");
  source_.Stop();
  pods_api_.EndLooking(Known(2));
  Poll();
  EXPECT_THAT(answered_, IsEmpty());
}

TEST(HttpsUrlTest, TakesAddressesApart) {
  const StatusOr<HttpsUrl> v6 = ParseHttpsUrl("https://[::1]:10250/pods");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->port, "10250");
  EXPECT_EQ(v6->target, "/pods");
  EXPECT_EQ(ParseHttpsUrl("https://node")->port, "443");
  for (const char* bad : {"", "http://a/pods", "https://", "https://:1/", "https://a:b/",
                          "https://a:123456/", "https://a/ x"}) {
    EXPECT_EQ(ParseHttpsUrl(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace qrm::manager::exact_source_test
