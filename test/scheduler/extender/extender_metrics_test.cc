#include "scheduler/extender/extender_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace qrm::scheduler::extender_metrics_test {
namespace {

using testing::HasSubstr;

// A counter that appears with its first increase hides that increase from rate().
TEST(ExtenderMetricsTest, EachCounterIsThereFromTheStart) {
  prometheus::Registry registry;
  const ExtenderMetrics metrics(registry);
  const std::string text = prometheus::TextSerializer().Serialize(registry.Collect());
  EXPECT_THAT(text, HasSubstr(R"(qrm_scheduler_calls_total{call="bind",result="failed"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(qrm_scheduler_wakes_total{result="failed"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(qrm_scheduler_preempted_pods_total{result="ok"} 0)"));
}

}  // namespace
}  // namespace qrm::scheduler::extender_metrics_test
