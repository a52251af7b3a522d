#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/publish/node_patch.h"
#include "scheduler/cache/cluster_cache.h"
#include "scheduler/cache/filter.h"
#include "scheduler/topology/driver_offer.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler::driver_resource_test {
namespace {

using testing::HasSubstr;

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
        {{.resource = "cci.qrm.io/fast", .live = fast_is_live},
         {.resource = "cci.qrm.io/secret", .live = true}},
        {{"fast", {.namespaces = {"d*"}}},
         {"spare", {.namespaces = {"db"}, .when_missing = placement::WhenMissing::kFallBack}},
         {"slow", {.namespaces = {"db"}}}},
        placement::Permissions(
            {{.title = "spies", .namespaces = {"spies"}, .drivers = {"secret"}}}));
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

TEST_F(DriverResourceTest, APodFitsWhereItsNamespaceMayAskForTheDriver) {
  const auto refusal_of = [&](const std::string& pod_namespace, const std::string& driver) {
    Pod pod = Asking({{"cci.qrm.io/driver", driver}});
    pod.pod_namespace = pod_namespace;
    return Refusal(pod);
  };
  const std::string refused = "its namespace may not ask for that compute driver there";
  EXPECT_EQ(refusal_of("db", "secret"), refused);
  EXPECT_EQ(refusal_of("spies", "secret"), "");
  EXPECT_EQ(refusal_of("spies", "fast"), refused);
  EXPECT_EQ(refusal_of("dev", "fast"), "");
  EXPECT_EQ(refusal_of("kube-system", "fast"), "");
}

TEST_F(DriverResourceTest, ANodeThatDoesNotPublishWhoMayAskTakesPodsOfAllNamespaces) {
  cache_->SetNode({.name = "n1", .annotations = {{kNodeDrivers, R"({"fast":"ready"})"}}});
  EXPECT_EQ(Refusal(Asking({{"cci.qrm.io/driver", "fast"}})), "");
  EXPECT_EQ(Refusal(Asking({{"cci.qrm.io/driver", "slow"}})),
            "the node does not have its compute driver");
}

TEST_F(DriverResourceTest, WhatANodeCannotMeanIsAsNoDriver) {
  std::string many;
  for (int i = 0; i < 5000; ++i) {
    many += (i == 0 ? "{\"fast\":\"ready\"" : ",\"d" + std::to_string(i) + "\":\"ready\"");
  }
  for (const std::string& text :
       {many + "}", std::string("[\"fast\"]"), std::string("{"), std::string(R"({"fast":1})"),
        std::string(R"({"permissions":[],"drivers":{"fast":"ready"}})")}) {
    cache_->SetNode({.name = "n1", .annotations = {{kNodeDrivers, text}}});
    EXPECT_NE(Refusal(Asking({{"cci.qrm.io/driver", "fast"}})), "");
    EXPECT_EQ(Refusal(Asking({})), "");
  }
}

TEST(ReadDriverOfferTest, NamesTheAnnotationThatItCannotRead) {
  for (const char* text : {"", "[]", R"({"fast": 1})", R"({"permissions": [{}], "drivers": {}})"}) {
    EXPECT_THAT(MessageOf(ReadDriverOffer(text).status()), HasSubstr("qrm.io/compute-drivers"))
        << text;
  }
}

TEST_F(DriverResourceTest, ANodeThatPublishesNoDriversTakesPodsWithoutOneOnly) {
  EXPECT_EQ(Refusal(Asking({}), "n2"), "");
  EXPECT_EQ(Refusal(Asking({{"cci.qrm.io/driver", ""}}), "n2"), "");
  EXPECT_NE(Refusal(Asking({{"cci.qrm.io/driver", "fast"}}), "n2"), "");
}

}  // namespace
}  // namespace qrm::scheduler::driver_resource_test
