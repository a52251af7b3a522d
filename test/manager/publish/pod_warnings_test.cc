#include "manager/publish/pod_warnings.h"

#include <chrono>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace qrm::manager::pod_warnings_test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class PodWarningsTest : public testing::Test {
 protected:
  std::optional<cluster::ApiRequest> Take(const std::string& pod,
                                          const std::string& message = "no room") {
    return events_.Take(
        {.pod_namespace = "ns", .pod_name = pod, .pod_uid = "uid-" + pod, .message = message},
        now_);
  }
  void Advance(seconds time) {
    now_.steady += time;
    now_.wall += time;
  }

  PodWarnings events_{"n1"};
  PodWarnings::Now now_{.steady = PodWarnings::Now().steady + std::chrono::hours(1),
                        .wall = std::chrono::system_clock::time_point(seconds(60))};
};

TEST_F(PodWarningsTest, ARejectionIsAWarningOnItsPodAtOnce) {
  const auto request = Take("web");
  ASSERT_TRUE(request.has_value());
  const json event = json::parse(request.value_or(cluster::ApiRequest()).body);
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "PlacementRefused");
  EXPECT_EQ(event["message"], "no room");
  EXPECT_EQ(event["involvedObject"], json::parse(R"({"apiVersion": "v1", "kind": "Pod",
      "namespace": "ns", "name": "web", "uid": "uid-web"})"));
  EXPECT_EQ(event["source"], json({{"component", "qrmd"}, {"host", "n1"}}));
  EXPECT_EQ(event["firstTimestamp"], "1970-01-01T00:01:00Z");
}

TEST_F(PodWarningsTest, AnotherWarningHasItsOwnReason) {
  const auto request = events_.Take({.pod_namespace = "ns",
                                     .pod_name = "web",
                                     .pod_uid = "u",
                                     .message = "2 is a count",
                                     .reason = "ComputeDriverWarning"},
                                    now_);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(json::parse(request.value_or(cluster::ApiRequest()).body)["reason"],
            "ComputeDriverWarning");
}

TEST_F(PodWarningsTest, EqualOnesAreOneEventThatIsWrittenOnceAMinute) {
  const std::string path = Take("web").value_or(cluster::ApiRequest()).path;
  Advance(seconds(30));
  EXPECT_FALSE(Take("web").has_value());
  Advance(seconds(30));
  const auto third = Take("web").value_or(cluster::ApiRequest());
  EXPECT_EQ(third.path, path);
  EXPECT_EQ(json::parse(third.body)["count"], 3);
  EXPECT_EQ(json::parse(third.body)["firstTimestamp"], "1970-01-01T00:01:00Z");
  EXPECT_EQ(json::parse(third.body)["lastTimestamp"], "1970-01-01T00:02:00Z");
}

TEST_F(PodWarningsTest, AnotherReasonIsAnotherEvent) {
  EXPECT_NE(Take("web", "no room").value_or(cluster::ApiRequest()).path,
            Take("web", "no memory").value_or(cluster::ApiRequest()).path);
}

TEST_F(PodWarningsTest, ManyAtOnceAreCutOffAndGoOnSlowly) {
  int told = 0;
  for (int i = 0; i < 100; ++i) {
    told += Take("pod" + std::to_string(i)).has_value() ? 1 : 0;
  }
  EXPECT_EQ(told, PodWarnings::kBurst);
  Advance(PodWarnings::kRefill);
  EXPECT_TRUE(Take("next").has_value());
  EXPECT_FALSE(Take("after").has_value());
}

TEST_F(PodWarningsTest, AnyPodsNameMakesANameOfAnEvent) {
  const std::string path =
      Take(std::string(250, '-').replace(0, 1, "a")).value_or(cluster::ApiRequest()).path;
  EXPECT_THAT(path, testing::MatchesRegex("/api/v1/namespaces/ns/events/a[.][0-9a-f]{16}[?].*"));
}

}  // namespace
}  // namespace qrm::manager::pod_warnings_test
