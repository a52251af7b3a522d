// The runtime's events of pods whose spec is known.
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "manager/demand/pod_spec.h"
#include "test/manager/pods/pod_events_fixture.h"

namespace qrm::manager::pod_events_spec_test {
namespace {

using test::Container;
using test::Pod;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// Every pod has the containers setup (init), main and logger.
class SpecSource final : public DemandSource {
 public:
  void Find(const RuntimePod& pod, const RuntimeContainer& container, Deadline /*deadline*/,
            Found found) override {
    const placement::ContainerDemand estimate = *estimate_.Estimate(pod, container);
    PodManifest manifest{.uid = pod.uid, .pod_namespace = pod.pod_namespace, .name = pod.name};
    manifest.init_containers = {{.name = "setup"}};
    manifest.containers = {
        {.name = "main", .resources = {.requests = {{"cpu", "1"}}, .limits = {}}},
        {.name = "logger"}};
    placement::ContainerDemand demand = Refine(estimate, *ReadManifest(manifest), "", "test")
                                            .value_or(placement::ContainerDemand());
    if (slow_pods.contains(pod.uid)) {
      waiting.push_back([found = std::move(found), demand = std::move(demand)] { found(demand); });
      return;
    }
    found(std::move(demand));
  }
  void Prefetch(const RuntimePod& pod) override { prefetched.push_back(pod.uid); }

  /// Answers the pending requests for slow pods.
  void Release() {
    for (const auto& answer : std::exchange(waiting, {})) {
      answer();
    }
  }

  std::vector<std::string> prefetched;
  std::set<std::string> slow_pods;  ///< UIDs
  std::vector<std::function<void()>> waiting;

 private:
  CgroupEstimate estimate_;
};

struct BySpec {
  SpecSource by_spec_;
};

class PodEventsSpecTest : protected BySpec, public test::PodEventsFixture {
 protected:
  PodEventsSpecTest() : PodEventsFixture(by_spec_) {}

  StatusOr<ContainerAdjustment> CreateNamed(const std::string& name) {
    StatusOr<ContainerAdjustment> got = Errorf(StatusCode::kInternal, "no reply");
    events_.OnCreateContainer(Pod("web"), Named(name),
                              [&](StatusOr<ContainerAdjustment> reply) { got = std::move(reply); });
    test::Settle(state_);
    return got;
  }
  static RuntimeContainer Named(const std::string& name) {
    RuntimeContainer container = Container("web", "id-" + name);
    container.name = name;
    return container;
  }
  bool Has(const std::string& name) { return state_.Load()->Find({"uid-web", name}) != nullptr; }
};

TEST_F(PodEventsSpecTest, LooksForTheSpecWhenThePodStarts) {
  events_.OnPodStarted(Pod("web"));
  EXPECT_THAT(by_spec_.prefetched, Contains("uid-web"));
}

TEST_F(PodEventsSpecTest, PlacesThePodWithItsFirstContainer) {
  ASSERT_TRUE(CreateNamed("setup").ok());
  EXPECT_TRUE(Has("setup") && Has("main") && Has("logger"));
  plugins_.ForgetCalls();
  EXPECT_EQ(CreateNamed("logger")->resources.cpuset_cpus, "0-1");
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

TEST_F(PodEventsSpecTest, ReleasesInitContainersWhenTheMainOneIsCreated) {
  ASSERT_TRUE(CreateNamed("setup").ok());
  events_.OnContainerStopped(Pod("web"), Named("setup"));
  ASSERT_TRUE(CreateNamed("logger").ok());
  EXPECT_TRUE(Has("setup"));
  ASSERT_TRUE(CreateNamed("main").ok());
  EXPECT_FALSE(Has("setup"));
  EXPECT_TRUE(Has("main") && Has("logger"));
  EXPECT_THAT(plugins_.calls(), Contains("release cpu uid-web/setup"));
}

TEST_F(PodEventsSpecTest, ReleasesInitContainersWhenTheDiskAcceptsItAgain) {
  ASSERT_TRUE(CreateNamed("setup").ok());
  events_.OnContainerStopped(Pod("web"), Named("setup"));
  ASSERT_TRUE(CreateNamed("logger").ok());
  journal_.on_commit = [this](const checkpoint::Change& change) {
    if (!change.remove_containers.empty()) {
      journal_.Fail(Errorf(StatusCode::kUnavailable, "disk I/O error"));
    }
  };
  ASSERT_TRUE(CreateNamed("main").ok());
  ASSERT_TRUE(Has("setup"));
  journal_.on_commit = [](const checkpoint::Change&) {};
  journal_.Fail(OkStatus());
  test::RunOn(state_, [this] { placer_.OnDiskReturned(); });
  EXPECT_FALSE(Has("setup"));
  EXPECT_TRUE(Has("main") && Has("logger"));
}

TEST_F(PodEventsSpecTest, ReleasesInitContainersThatEndedUnnoticed) {
  ASSERT_TRUE(CreateNamed("setup").ok());
  Synchronize({Pod("web")}, {Named("main")});
  EXPECT_FALSE(Has("setup"));
  EXPECT_TRUE(Has("main") && Has("logger"));
}

TEST_F(PodEventsSpecTest, ReleasesInitContainersThatWerePlacedBeforeTheirSpecCame) {
  checkpoint::Change change;
  change.put_containers.push_back(
      {{.uid = "uid-web", .pod_namespace = "default", .name = "web"},
       "setup",
       {.request_source = kEstimate, .allocations = {{"cpu", test::OwnCpus("0-1")}}}});
  test::RunOn(state_, [&] { EXPECT_EQ(state_.Commit(change), OkStatus()); });
  ASSERT_TRUE(CreateNamed("main").ok());
  EXPECT_FALSE(Has("setup"));
  EXPECT_TRUE(Has("main"));
}

TEST_F(PodEventsSpecTest, PlacesWhatAResizeLetGrowBeforeTheSpecReportsIt) {
  ASSERT_TRUE(CreateNamed("main").ok());
  Update(Pod("web"), Named("main"),
         {.cpu_shares = 2048, .cpu_quota_us = 200000, .cpu_period_us = 100000});
  test::Settle(state_);
  EXPECT_THAT(plugins_.calls(), Contains("allocate cpu"));
  EXPECT_EQ(plugins_.allocated("cpu").quantity(), 2);
}

TEST_F(PodEventsSpecTest, AdmitsOtherPodsWhileTheSpecOfOneIsLookedFor) {
  by_spec_.slow_pods = {"uid-slow"};
  std::optional<Status> answered;
  events_.OnCreateContainer(Pod("slow"), Container("slow", "id1"),
                            [&](const auto& reply) { answered = reply.status(); });
  ASSERT_TRUE(CreateNamed("main").ok());
  EXPECT_FALSE(answered.has_value());
  by_spec_.Release();
  test::Settle(state_);
  EXPECT_EQ(answered, OkStatus());
  EXPECT_TRUE(Known("slow"));
}

TEST_F(PodEventsSpecTest, AdmitsNoPodThatWasRemovedWhileItsSpecWasLookedFor) {
  by_spec_.slow_pods = {"uid-web"};
  std::optional<Status> answered;
  events_.OnCreateContainer(Pod("web"), Named("main"),
                            [&](const auto& reply) { answered = reply.status(); });
  events_.OnPodRemoved(Pod("web"));
  test::Settle(state_);
  by_spec_.Release();
  test::Settle(state_);
  EXPECT_FALSE(Has("main")) << "it would never be removed";
  ASSERT_TRUE(answered.has_value());
  EXPECT_THAT(MessageOf(answered.value_or(OkStatus())),
              HasSubstr("default/web: the pod was removed"));
}

TEST_F(PodEventsSpecTest, AdoptsAContainerWhenItsSpecIsFoundAndAdmitsOthersMeanwhile) {
  by_spec_.slow_pods = {"uid-slow"};
  events_.OnSynchronize({Pod("slow")}, {Container("slow", "id1")}, [](const auto&) {});
  ASSERT_TRUE(CreateNamed("main").ok());
  EXPECT_FALSE(Known("slow"));
  by_spec_.Release();
  test::Settle(state_);
  EXPECT_TRUE(Known("slow"));
}

TEST_F(PodEventsSpecTest, AdoptsNoContainerThatEndedWhileItsSpecWasLookedFor) {
  by_spec_.slow_pods = {"uid-slow"};
  events_.OnSynchronize({Pod("slow")}, {Container("slow", "id1")}, [](const auto&) {});
  test::Settle(state_);
  events_.OnContainerStopped(Pod("slow"), Container("slow", "id1"));
  by_spec_.Release();
  test::Settle(state_);
  EXPECT_FALSE(Known("slow"));
}

TEST_F(PodEventsSpecTest, LeavesContainersThatRunOutOfANewPlacement) {
  ASSERT_TRUE(live_.Find({"uid-web", "logger"}) == std::nullopt);
  live_.Add({"uid-web", "logger"}, {.id = "id-logger", .pod_id = "sandbox-web"});
  ASSERT_TRUE(CreateNamed("main").ok());
  EXPECT_TRUE(Has("main"));
  EXPECT_FALSE(Has("logger")) << "its values would never be applied";
}

}  // namespace
}  // namespace qrm::manager::pod_events_spec_test
