#include "scheduler/examples/disk_io_resource.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scheduler/cache/cluster_cache.h"
#include "scheduler/cache/filter.h"

namespace qrm::scheduler::disk_io_resource_test {
namespace {

Pod Asking(const std::string& name, const std::string& io_class, const std::string& read,
           const std::string& write, const std::string& node = "") {
  return {.uid = name,
          .pod_namespace = "ns",
          .name = name,
          .node = node,
          .annotations = {{kDiskIoClass, io_class}, {kDiskIoRead, read}, {kDiskIoWrite, write}}};
}

// Node n1 with 100 MB/s for each direction of class gold, and 10 MB/s of class bulk.
class DiskIoTest : public testing::Test {
 protected:
  DiskIoTest() {
    handles_.Register(kDiskIo, MakeDiskIoHandle);
    cache_ = *ClusterCache::Make(handles_);
    cache_->ReplaceNodes({{.name = "n1"}}, "1");
    cache_->ReplacePods({.version = "1"});
    cache_->ReplaceObjects(kDiskIoStatuses, {}, "1");
    Offer(R"({"gold": {"read": "100M", "write": "100M"},
              "bulk": {"read": "10M", "write": 10000000}})");
  }
  void Offer(const std::string& classes) {
    const nlohmann::json body = {
        {"spec", {{"nodeName", "n1"}, {"classes", nlohmann::json::parse(classes)}}}};
    cache_->SetObject(kDiskIoStatuses,
                      {.name = "n1", .body = std::make_shared<const nlohmann::json>(body)});
  }
  nlohmann::json Shown() const {
    return nlohmann::json::parse(cache_->Dump()).at("/nodes/n1/resources/disk-io"_json_pointer);
  }
  std::string Refusal(const Pod& pod) { return RefusalOf(*cache_->Publish(), handles_, pod, "n1"); }

  HandleRegistry handles_;
  std::unique_ptr<ClusterCache> cache_;
};

TEST_F(DiskIoTest, CountsReadingAndWritingOfEachClassByThemselves) {
  cache_->SetPod(Asking("a", "gold", "80M", "10M", "n1"));
  EXPECT_EQ(Refusal(Asking("b", "gold", "20M", "90M")), "");
  EXPECT_EQ(Refusal(Asking("b", "gold", "21M", "1M")), "not enough disk-io");
  EXPECT_EQ(Refusal(Asking("b", "gold", "1M", "91M")), "not enough disk-io");
  EXPECT_EQ(Refusal(Asking("b", "bulk", "10M", "10M")), "");
}

TEST_F(DiskIoTest, GivesBackWhatADeletedPodHad) {
  cache_->SetPod(Asking("a", "gold", "80M", "10M", "n1"));
  cache_->DeletePod("a", "");
  EXPECT_EQ(Refusal(Asking("b", "gold", "100M", "100M")), "");
}

TEST_F(DiskIoTest, ABalanceBelowZeroIsShownAndReturnsToWhatItWas) {
  cache_->SetPod(Asking("a", "gold", "80M", "10M", "n1"));
  const nlohmann::json before = Shown();
  Offer(R"({"gold": {"read": "50M", "write": 0}})");
  EXPECT_EQ(Shown(), nlohmann::json::parse(R"({"gold": {"read": -3e7, "write": -1e7}})"));
  EXPECT_EQ(Refusal(Asking("b", "gold", "1M", "0")), "not enough disk-io");
  EXPECT_EQ(Refusal(Asking("b", "gold", "0", "1M")), "not enough disk-io");
  Offer("{}");
  EXPECT_EQ(Shown(), nlohmann::json::parse(R"({"gold": {"read": -8e7, "write": -1e7}})"));
  EXPECT_EQ(Refusal(Asking("b", "gold", "1M", "1M")), "the node has no such class of disk-io");
  Offer(R"({"gold": {"read": "100M", "write": "100M"}, "bulk": {"read": "10M", "write": "10M"}})");
  EXPECT_EQ(Shown(), before);
  Offer("{}");
  cache_->DeletePod("a", "");
  EXPECT_EQ(Shown(), nlohmann::json::object());
}

TEST_F(DiskIoTest, RejectsAClassThatTheNodeDoesNotHave) {
  EXPECT_EQ(Refusal(Asking("a", "silver", "1M", "1M")), "the node has no such class of disk-io");
}

TEST_F(DiskIoTest, RejectsAnnotationsThatAreNoQuantities) {
  EXPECT_THAT(Refusal(Asking("a", "gold", "fast", "1M")), testing::HasSubstr("no quantities"));
}

TEST_F(DiskIoTest, PrefersTheNodeThatIsFilledUp) {
  EXPECT_EQ(ScoreOf(*cache_->Publish(), Asking("a", "gold", "1M", "50M"), "n1"), 50);
  EXPECT_EQ(ScoreOf(*cache_->Publish(), Asking("a", "bulk", "1M", "10M"), "n1"), 100);
}

}  // namespace
}  // namespace qrm::scheduler::disk_io_resource_test
