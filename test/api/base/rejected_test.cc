// Rejected connections are counted by kind, and logged without filling the log.
#include "api/base/rejected.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/log.h"

namespace qrm::rejected_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class RejectTest : public testing::Test {
 protected:
  RejectTest() {
    log::SetSink([this](log::Level, const std::string& line) { lines_.push_back(line); });
  }
  ~RejectTest() override { log::SetSink(nullptr); }

  std::vector<std::string> lines_;
};

std::vector<std::string> KindsOf(RejectedBy program) {
  std::vector<std::string> kinds;
  for (const RejectedCount& rejected : RejectedByKind(program)) {
    kinds.emplace_back(rejected.kind);
  }
  return kinds;
}

TEST_F(RejectTest, CountsEachKindForItself) {
  const uint64_t frames = RejectedSoFar(Rejected::kGrpcFrames);
  const uint64_t tokens = RejectedSoFar(Rejected::kHttpToken);
  Reject(Rejected::kGrpcFrames, "cannot serve process 1");
  Reject(Rejected::kGrpcFrames, "cannot serve process 1");
  EXPECT_EQ(RejectedSoFar(Rejected::kGrpcFrames), frames + 2);
  EXPECT_EQ(RejectedSoFar(Rejected::kHttpToken), tokens);
}

TEST_F(RejectTest, LogsEqualErrorsOnce) {
  for (int i = 0; i < 100; ++i) {
    Reject(Rejected::kWebPage, "cannot answer a web page, of evil.test");
  }
  EXPECT_THAT(lines_,
              testing::ElementsAre(AllOf(HasSubstr("kind=web_page"), HasSubstr("evil.test"))));
}

TEST_F(RejectTest, LogsALimitedNumberOfErrorsOfAKind) {
  for (int i = 0; i < 1000; ++i) {
    Reject(Rejected::kPluginPath, "cannot take plugins from directory " + std::to_string(i));
  }
  EXPECT_THAT(lines_, SizeIs(kMostRejectedLines));
  Reject(Rejected::kSocketUser, "cannot serve user 7");
  EXPECT_THAT(lines_, SizeIs(kMostRejectedLines + 1)) << "another kind has its own lines";
}

TEST_F(RejectTest, EachProgramListsWhatItMayReject) {
  EXPECT_THAT(KindsOf(RejectedBy::kDaemon),
              AllOf(Contains("grpc_frames"), Contains("json"), Not(Contains("placement"))));
  EXPECT_THAT(KindsOf(RejectedBy::kScheduler),
              AllOf(Contains("placement"), Contains("json"), Not(Contains("grpc_frames"))));
}

}  // namespace
}  // namespace qrm::rejected_test
