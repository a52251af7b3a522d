#include "scheduler/extender/call_guard.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::scheduler::call_guard_test {
namespace {

enum class Name { kOurs, kAnother };

struct GuardCase {
  std::string name;  // CamelCase: part of the test's name
  HttpQuestion question;
  Name called_by = Name::kOurs;
  int status = 0;  // 0: it is answered
};

class CallGuardTest : public testing::TestWithParam<GuardCase> {};

TEST_P(CallGuardTest, AnswersProgramsAndNoPages) {
  const auto refusal = RefusalOfBrowsers(GetParam().question, GetParam().called_by == Name::kOurs);
  EXPECT_EQ(refusal.has_value() ? refusal->status : 0, GetParam().status);
}

const GuardCase kCalls[] = {
    {"KubeScheduler", {.method = "POST", .content_type = "application/json"}},
    {"JsonWithParameter", {.method = "POST", .content_type = "application/json ; charset=utf-8"}},
    {"Curl", {.method = "GET"}},
    {"AnotherName", {.method = "GET", .host = "evil.test"}, Name::kAnother, 403},
    {"Page", {.method = "GET", .origin = "http://localhost:3000"}, Name::kOurs, 403},
    {"PageWithoutName",
     {.method = "POST", .origin = "null", .content_type = "application/json"},
     Name::kOurs,
     403},
    {"Form", {.method = "POST", .content_type = "text/plain"}, Name::kOurs, 415},
    {"NoType", {.method = "POST"}, Name::kOurs, 415},
    {"LongerType", {.method = "POST", .content_type = "application/jsonp"}, Name::kOurs, 415},
};
INSTANTIATE_TEST_SUITE_P(All, CallGuardTest, testing::ValuesIn(kCalls),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::scheduler::call_guard_test
