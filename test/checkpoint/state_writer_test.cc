// Which pages of the database a commit writes.
#include "checkpoint/state_writer.h"

#include <string>

#include <gtest/gtest.h>

#include "checkpoint/schema.h"
#include "test/checkpoint/sample_state.h"
#include "test/support/temp_dir.h"

namespace qrm::checkpoint::state_writer_test {
namespace {

class StateWriterTest : public testing::Test {
 protected:
  /// Returns the pages that it wrote.
  int Commit(const Change& change) {
    const NodeState after = state_.With(change);
    const int before = db_.pages_written();
    EXPECT_TRUE(writer_.Write({change, state_, after}).ok());
    state_ = after;
    return db_.pages_written() - before;
  }

  const test::TempDir dir_;
  SqliteDb db_ = *SqliteDb::Open(dir_ / "checkpoint.db", CheckpointSchema());
  NodeState state_;
  StateWriter writer_ = *StateWriter::Open(db_, state_);
};

// However full the last page is when the pod comes that will go again.
TEST_F(StateWriterTest, PodThatComesAndGoesWritesOnePageEachTime) {
  for (int residents = 0; residents < 40; ++residents) {
    const std::string guest = "guest-" + std::to_string(residents);
    for (int i = 0; i < 2; ++i) {  // by then it is known where the page ends
      Commit(test::PutSample(guest));
      Commit(test::RemoveSample(guest));
    }
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(Commit(test::PutSample(guest)), 1) << residents;
      EXPECT_EQ(Commit(test::RemoveSample(guest)), 1) << residents;
    }
    Commit(test::PutSample("resident-" + std::to_string(residents)));
  }
}

TEST_F(StateWriterTest, RowsThatMovedAreChangedAndRemovedWhereTheyAre) {
  for (int residents = 0; residents < 40; ++residents) {
    for (int i = 0; i < 3; ++i) {
      Commit(test::PutSample("guest"));
      Commit(test::RemoveSample("guest"));
    }
    Commit(test::PutSample("resident-" + std::to_string(residents)));
  }
  for (int residents = 0; residents < 40; ++residents) {
    const std::string uid = "resident-" + std::to_string(residents);
    residents % 2 == 0 ? Commit(test::RemoveSample(uid)) : Commit(test::PutSample(uid, "second"));
  }
  auto count = db_.Prepare("SELECT count(*), count(DISTINCT pod || name) FROM container");
  ASSERT_TRUE(count.ok() && count->Step().value_or(false));
  EXPECT_EQ(count->Integer(0), 40);
  EXPECT_EQ(count->Integer(1), 40);
  const auto again = StateWriter::Open(db_, state_);
  EXPECT_TRUE(again.ok());
}

}  // namespace
}  // namespace qrm::checkpoint::state_writer_test
