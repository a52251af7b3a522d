// A decision's document stays within its limit.
#include "manager/admission/explanation.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace qrm::manager::explanation_test {
namespace {

/// As many as a machine of 64 NUMA nodes has.
HintList ManyHints() {
  std::vector<TopologyHint> hints;
  for (int first = 0; first < 64; ++first) {
    for (int last = first; last < 64; ++last) {
      hints.push_back({.nodes = NumaMask::Range(first, last)});
    }
  }
  return HintList(std::move(hints));
}

TEST(ExplanationTest, NamesThePartsThatAreTooLargeForItsDocument) {
  Explanation explanation;
  for (const char* const resource : {"cpu", "memory", "NIC"}) {
    explanation.requests[resource] = 1;
    explanation.hints[resource] = ManyHints();
    explanation.merge_reasons.emplace_back(20'000, 'x');
  }
  const nlohmann::json json = nlohmann::json::parse(ToJson(explanation, {}));
  EXPECT_LT(json.dump().size(), 33'000U);
  EXPECT_THAT(json["left_out"], testing::ElementsAre(testing::StartsWith("hints ("),
                                                     testing::StartsWith("merge_reasons (")));
  EXPECT_TRUE(json["requests"].contains("cpu")) << json;
}

}  // namespace
}  // namespace qrm::manager::explanation_test
