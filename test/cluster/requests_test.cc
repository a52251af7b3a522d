#include "cluster/requests.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace qrm::cluster::requests_test {
namespace {

using nlohmann::json;
using std::chrono::microseconds;
using std::chrono::system_clock;

TEST(RequestsTest, ABindingNamesThePodByItsUidAndWritesAnnotations) {
  const ApiRequest request = BindRequest({.pod_namespace = "d",
                                          .pod = "p",
                                          .uid = "u",
                                          .node = "n1",
                                          .annotations = {{"qrm.io/placement", "x"}}});
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/api/v1/namespaces/d/pods/p/binding");
  EXPECT_EQ(json::parse(request.body), json::parse(R"({"apiVersion":"v1","kind":"Binding",
      "metadata":{"name":"p","uid":"u","annotations":{"qrm.io/placement":"x"}},
      "target":{"apiVersion":"v1","kind":"Node","name":"n1"}})"));
}

TEST(RequestsTest, AMergePatchSaysSo) {
  EXPECT_EQ(MergePatchRequest("/x", json::object()).content_type, "application/merge-patch+json");
}

TEST(RequestsTest, AnApplyTakesWhatOthersManage) {
  const ApiRequest request = ApplyRequest("/x", {{"a", 1}}, "qrmd");
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.path, "/x?force=true&fieldManager=qrmd");
  EXPECT_EQ(request.content_type, "application/apply-patch+yaml");
}

TEST(RequestsTest, AWarningIsOneEventOfItsName) {
  const ApiRequest request = WarningRequest({.name = "p.1",
                                             .pod_namespace = "d",
                                             .pod_name = "p",
                                             .message = std::string(2000, 'x'),
                                             .component = "qrmd",
                                             .count = 3});
  EXPECT_EQ(request.path, "/api/v1/namespaces/d/events/p.1?force=true&fieldManager=qrmd");
  const json event = json::parse(request.body);
  EXPECT_EQ(event["count"], 3);
  EXPECT_LE(event["message"].get<std::string>().size(), 1024U);
}

TEST(RequestsTest, MicroTimeHasSixDecimals) {
  EXPECT_EQ(MicroTime(system_clock::time_point(microseconds(1'000'042))),
            "1970-01-01T00:00:01.000042Z");
}

TEST(RequestsTest, QueriesAreEncoded) {
  EXPECT_EQ(PercentEncoded("status.phase!=Failed,a b"), "status.phase%21%3DFailed%2Ca%20b");
}

}  // namespace
}  // namespace qrm::cluster::requests_test
