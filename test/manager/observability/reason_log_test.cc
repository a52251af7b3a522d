#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/log.h"
#include "manager/observability/subsystems.h"

namespace qrm::manager::reason_log_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ReasonLogTest : public testing::Test {
 protected:
  ReasonLogTest() {
    log::SetSink([this](log::Level, const std::string& line) { lines_.push_back(line); });
  }
  ~ReasonLogTest() override { log::SetSink({}); }
  std::vector<std::string> Note(const NodeStatus& status) {
    lines_.clear();
    changes_ = log_.Note(status);
    return lines_;
  }

  ReasonLog log_;
  std::vector<std::string> lines_;
  std::vector<std::string> changes_;
};

TEST_F(ReasonLogTest, TellsEachReasonWhenItBeginsAndWhenItEnds) {
  EXPECT_THAT(Note({.degraded_reasons = {"no CRI"}}),
              ElementsAre(AllOf(HasSubstr("degraded"), HasSubstr("no CRI"))));
  EXPECT_THAT(changes_, ElementsAre("degraded: no CRI"));
  EXPECT_THAT(Note({.not_ready_reasons = {"no disk"}, .degraded_reasons = {"no CRI"}}),
              ElementsAre(AllOf(HasSubstr("not ready"), HasSubstr("no disk"))));
  EXPECT_THAT(Note({.not_ready_reasons = {"no disk"}}),
              ElementsAre(AllOf(HasSubstr("no longer degraded"), HasSubstr("no CRI"))));
  EXPECT_THAT(changes_, ElementsAre("no longer degraded: no CRI"));
}

TEST_F(ReasonLogTest, TellsAReasonWhoseNumbersChangeOnce) {
  Note({.degraded_reasons = {"unpinned: 1"}});
  EXPECT_THAT(Note({.degraded_reasons = {"unpinned: 2"}}), IsEmpty());
}

}  // namespace
}  // namespace qrm::manager::reason_log_test
