#include "scheduler/examples/fake_resource.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scheduler/cache/cluster_cache.h"
#include "scheduler/cache/filter.h"

namespace qrm::scheduler::fake_resource_test {
namespace {

Pod Asking(const std::string& name, const std::string& request, const std::string& node = "") {
  return {.uid = name,
          .pod_namespace = "ns",
          .name = name,
          .node = node,
          .annotations = {{kFakeRequest, request}}};
}

// The proposal's scenario: custom resources give the capacity of node n1, annotations ask for it.
class FakeResourceTest : public testing::Test {
 protected:
  FakeResourceTest() {
    handles_.Register(kFakeResource, MakeFakeHandle);
    cache_ = *ClusterCache::Make(handles_);
    cache_->ReplaceNodes({{.name = "n1"}}, "1");
    cache_->ReplacePods({.version = "1"});
    cache_->ReplaceObjects(kFakeStatuses, {}, "1");
    Capacity(10);
  }

  void Capacity(int capacity) {
    cache_->SetObject(kFakeStatuses,
                      {.name = "n1",
                       .body = std::make_shared<const nlohmann::json>(nlohmann::json{
                           {"spec", {{"nodeName", "n1"}, {"fakeResource", capacity}}}})});
  }
  int Available() const {
    return nlohmann::json::parse(cache_->Dump()).at("/nodes/n1/resources/fake"_json_pointer);
  }
  std::string Refusal(const Pod& pod) { return RefusalOf(*cache_->Publish(), handles_, pod, "n1"); }

  HandleRegistry handles_;
  std::unique_ptr<ClusterCache> cache_;
};

TEST_F(FakeResourceTest, PlaysTheScenarioOfTheProposal) {
  EXPECT_EQ(Available(), 10);
  cache_->SetPod(Asking("a", "4", "n1"));
  EXPECT_EQ(Available(), 6);

  cache_->SetPod(Asking("b", "7"));
  EXPECT_EQ(Refusal(Asking("b", "7")), "not enough fake");
  Capacity(12);
  EXPECT_EQ(Available(), 8);
  EXPECT_TRUE(cache_->Assume("b", "n1").ok());
  EXPECT_EQ(Available(), 1);

  Capacity(5);
  EXPECT_EQ(Available(), -6);
  cache_->SetPod(Asking("c", "1"));
  EXPECT_EQ(Refusal(Asking("c", "1")), "not enough fake");
  cache_->DeletePod("a", "");
  EXPECT_EQ(Available(), -2);
  EXPECT_EQ(Refusal(Asking("c", "1")), "not enough fake");

  Pod b = Asking("b", "7", "n1");
  b.finished = true;
  cache_->SetPod(b);
  EXPECT_EQ(Available(), 5);
  EXPECT_TRUE(cache_->Assume("c", "n1").ok());
  EXPECT_EQ(Available(), 4);
}

TEST_F(FakeResourceTest, ABalanceBelowZeroIsShownAndReturnsToWhatItWas) {
  cache_->SetPod(Asking("a", "4", "n1"));
  for (const int capacity : {3, 0, 2, 0}) {
    Capacity(capacity);
    EXPECT_EQ(Available(), capacity - 4);
    EXPECT_EQ(Refusal(Asking("b", "1")), "not enough fake");
  }
  cache_->DeleteObject(kFakeStatuses, "n1", "");
  EXPECT_EQ(Refusal(Asking("b", "1")), "the node has not reported its fake");
  Capacity(10);
  EXPECT_EQ(Available(), 6);
  EXPECT_EQ(Refusal(Asking("b", "6")), "");
  EXPECT_EQ(Refusal(Asking("b", "7")), "not enough fake");
}

TEST_F(FakeResourceTest, APodThatAsksForNothingFitsWhereThereIsTooLittle) {
  cache_->SetPod(Asking("a", "9", "n1"));
  Capacity(1);
  EXPECT_EQ(Refusal({.uid = "x"}), "");
}

TEST_F(FakeResourceTest, CountsARequestRoundedUp) {
  cache_->SetPod(Asking("a", "1500m", "n1"));
  EXPECT_EQ(Available(), 8);
}

TEST_F(FakeResourceTest, RejectsAnAnnotationThatIsNotAQuantity) {
  EXPECT_THAT(Refusal(Asking("a", "three")), testing::HasSubstr("is not a quantity"));
  EXPECT_THAT(Refusal(Asking("a", "-3")), testing::HasSubstr("is not a quantity"));
}

TEST_F(FakeResourceTest, ACustomResourceWithoutCapacityReportsNothing) {
  cache_->SetObject(kFakeStatuses, {.name = "n1",
                                    .body = std::make_shared<const nlohmann::json>(
                                        nlohmann::json{{"spec", {{"nodeName", "n1"}}}})});
  EXPECT_EQ(Refusal(Asking("a", "1")), "the node has not reported its fake");
}

}  // namespace
}  // namespace qrm::scheduler::fake_resource_test
