#include "manager/reconcile/foreign_writes.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager::foreign_writes_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

class ForeignWritesTest : public testing::Test {
 protected:
  void Write(int times) {
    for (int i = 0; i < times; ++i) {
      now_ += seconds(3);
      writes_.Note({{"uid", "main"}, "CpusetCpus", "0-7", "0-3"}, now_);
    }
  }

  ForeignWrites::Time now_ = std::chrono::steady_clock::now();
  ForeignWrites writes_;
};

TEST_F(ForeignWritesTest, TenOfOneContainerMakeALastingWriter) {
  Write(9);
  writes_.Note({{"uid", "other"}, "CpusetCpus", "0-7", "0-3"}, now_);
  EXPECT_THAT(writes_.Lasting(now_), IsEmpty());
  Write(1);
  ASSERT_THAT(writes_.Lasting(now_), SizeIs(1));
  EXPECT_EQ(writes_.Lasting(now_)[0].times, 10U);
  EXPECT_EQ(writes_.Lasting(now_)[0].latest.key.container, "main");
}

TEST_F(ForeignWritesTest, AreNotLastingAfterAQuietTime) {
  Write(10);
  now_ += minutes(6);
  EXPECT_THAT(writes_.Lasting(now_), IsEmpty());
  Write(1);
  EXPECT_THAT(writes_.Lasting(now_), IsEmpty()) << "it counts from one again";
  EXPECT_EQ(writes_.repairs(), 11U);
}

}  // namespace
}  // namespace qrm::manager::foreign_writes_test
