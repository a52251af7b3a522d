// What is left of transactions of different durability after a power loss.
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/sqlite/sqlite_db.h"
#include "test/support/lossy_disk.h"
#include "test/support/temp_dir.h"

namespace qrm::checkpoint::sqlite_power_test {
namespace {

using Survives = SqliteDb::Survives;
using test::LossyDisk;
using test::TempDir;

/// A database of numbers, which are written in order.
class Numbers {
 public:
  explicit Numbers(const std::string& path, const SqliteOptions& options = {})
      : db_(*SqliteDb::Open(path, {.application_id = 7, .steps = {"CREATE TABLE numbers (n)"}},
                            options)) {}

  Status Write(int n, Survives survives) {
    return db_.Transaction(
        [&] { return db_.Execute("INSERT INTO numbers VALUES (" + std::to_string(n) + ")"); },
        survives);
  }

  /// The number of entries; -1 when one is missing before the last one.
  int Count() {
    SqliteStatement all = *db_.Prepare("SELECT count(*), coalesce(max(n), 0) FROM numbers");
    EXPECT_TRUE(all.Step().value_or(false));
    const auto count = static_cast<int>(all.Integer(0));
    return all.Integer(1) == count ? count : -1;
  }

 private:
  SqliteDb db_;
};

TEST(SqlitePowerTest, WhatSurvivesOnlyAKillCostsNoSync) {
  const TempDir dir = TempDir::InMemory();
  ASSERT_EQ(Numbers(dir / "a.db").Count(), 0);  // made on a disk that loses nothing
  LossyDisk disk;
  Numbers numbers(dir / "a.db", {.vfs = disk.name()});
  ASSERT_EQ(numbers.Write(1, Survives::kPowerLoss), OkStatus());
  const int synced = disk.syncs();
  ASSERT_EQ(numbers.Write(2, Survives::kKilled), OkStatus());
  EXPECT_EQ(disk.syncs(), synced);
  EXPECT_EQ(Numbers(dir / "a.db").Count(), 2);  // another process sees it
  ASSERT_EQ(numbers.Write(3, Survives::kPowerLoss), OkStatus());
  EXPECT_EQ(disk.syncs(), synced + 1);
}

TEST(SqlitePowerTest, ALossOfPowerTakesBackOnlyTheLastThatSurviveNone) {
  const TempDir dir = TempDir::InMemory();
  std::mt19937 random(7);
  int written = 0;
  int taken_back = 0;
  ASSERT_EQ(Numbers(dir / "a.db").Count(), 0);  // made on a disk that loses nothing
  for (int round = 0; round < 300; ++round) {
    LossyDisk disk;
    int secured = written;
    {
      Numbers numbers(dir / "a.db", {.vfs = disk.name()});
      disk.CutPowerAfter(static_cast<int>(random() % 60));
      while (true) {
        const Survives survives = random() % 2 == 0 ? Survives::kPowerLoss : Survives::kKilled;
        if (!numbers.Write(written + 1, survives).ok()) {
          break;
        }
        ++written;
        secured = survives == Survives::kPowerLoss ? written : secured;
      }
    }
    disk.PowerUp(random);
    const int left = Numbers(dir / "a.db").Count();
    ASSERT_NE(left, -1) << "round " << round << ": one is missing among others";
    ASSERT_GE(left, secured) << "round " << round;
    ASSERT_LE(left, written + 1) << "round " << round;
    taken_back += left < written ? 1 : 0;
    written = left;
  }
  EXPECT_GT(taken_back, 0);
}

}  // namespace
}  // namespace qrm::checkpoint::sqlite_power_test
