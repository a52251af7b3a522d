#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "manager/publish/node_patch.h"
#include "scheduler/cache/cluster_cache.h"
#include "scheduler/cache/filter.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler::driver_resource_test {
namespace {

Pod Asking(StringMap annotations) {
  return {.uid = "a",
          .pod_namespace = "db",
          .name = "a",
          .annotations = std::move(annotations),
          .containers = {{.name = "main"}}};
}

/// Node n1 publishes its drivers as qrmd does, and n2 publishes nothing.
class DriverResourceTest : public testing::Test {
 protected:
  DriverResourceTest() {
    handles_.Register(kDrivers, MakeDriversHandle);
    cache_ = *ClusterCache::Make(handles_);
    cache_->ReplaceNodes({N1(true), {.name = "n2"}}, "1");
    cache_->ReplacePods({.version = "1"});
  }
  static Node N1(bool fast_is_live) {
    const std::string drivers = manager::DriversText(
        {{.resource = "cci.qrm.io/fast", .live = fast_is_live}},
        {{"spare", {.when_missing = placement::WhenMissing::kFallBack}}, {"slow", {}}});
    return {.name = "n1", .annotations = {{kNodeDrivers, drivers}}};
  }
  std::string Refusal(const Pod& pod, const std::string& node = "n1") {
    return RefusalOf(*cache_->Publish(), handles_, pod, node);
  }

  HandleRegistry handles_;
  std::unique_ptr<ClusterCache> cache_;
};

TEST_F(DriverResourceTest, APodFitsWhereItsDriversAreReadyOrHaveAFallback) {
  EXPECT_EQ(Refusal(Asking({{"cci.qrm.io/driver", "fast"}})), "");
  EXPECT_EQ(Refusal(Asking({{"cci.qrm.io/driver", "spare"}})), "");
  EXPECT_EQ(Refusal(Asking({{"cci.qrm.io/driver", "slow"}})),
            "its compute driver is not running on the node");
  EXPECT_EQ(Refusal(Asking({{"cci.qrm.io/driver", "other"}})),
            "the node does not have its compute driver");
  EXPECT_EQ(Refusal(Asking(
                {{"cci.qrm.io/driver", "fast"}, {"driver.cci.qrm.io/container.main", "slow"}})),
            "its compute driver is not running on the node");
}

TEST_F(DriverResourceTest, ADriverThatStopsTakesNoMorePods) {
  cache_->SetNode(N1(false));
  EXPECT_EQ(Refusal(Asking({{"cci.qrm.io/driver", "fast"}})),
            "its compute driver is not running on the node");
  cache_->SetNode(N1(true));
  EXPECT_EQ(Refusal(Asking({{"cci.qrm.io/driver", "fast"}})), "");
}

TEST_F(DriverResourceTest, WhatANodeCannotMeanIsAsNoDriver) {
  std::string many;
  for (int i = 0; i < 2000; ++i) {
    many += (i == 0 ? "{\"fast\":\"ready\"" : ",\"d" + std::to_string(i) + "\":\"ready\"");
  }
  for (const std::string& text : {many + "}", std::string("[\"fast\"]"), std::string("{")}) {
    cache_->SetNode({.name = "n1", .annotations = {{kNodeDrivers, text}}});
    EXPECT_NE(Refusal(Asking({{"cci.qrm.io/driver", "fast"}})), "");
    EXPECT_EQ(Refusal(Asking({})), "");
  }
}

TEST_F(DriverResourceTest, ANodeThatPublishesNoDriversTakesPodsWithoutOneOnly) {
  EXPECT_EQ(Refusal(Asking({}), "n2"), "");
  EXPECT_EQ(Refusal(Asking({{"cci.qrm.io/driver", ""}}), "n2"), "");
  EXPECT_NE(Refusal(Asking({{"cci.qrm.io/driver", "fast"}}), "n2"), "");
}

}  // namespace
}  // namespace qrm::scheduler::driver_resource_test
