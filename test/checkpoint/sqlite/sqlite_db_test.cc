// The wrapper's guarantees: values, transactions, migrations, and other holders of the file.
#include "checkpoint/sqlite/sqlite_db.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "checkpoint/sqlite/durable_file.h"
#include "test/support/temp_dir.h"

namespace qrm::checkpoint::sqlite_db_test {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const SqliteSchema& Schema() {
  static const SqliteSchema schema = {.application_id = 42,
                                      .steps = {"CREATE TABLE item(key TEXT PRIMARY KEY, value)"}};
  return schema;
}

SqliteDb OpenOrDie(const std::string& path, const SqliteSchema& schema = Schema()) {
  StatusOr<SqliteDb> db = SqliteDb::Open(path, schema);
  EXPECT_TRUE(db.ok()) << db.status();
  return *std::move(db);
}

int64_t Count(SqliteDb& db) {
  StatusOr<SqliteStatement> count = db.Prepare("SELECT count(*) FROM item");
  return count.ok() && *count->Step() ? count->Integer(0) : -1;
}

TEST(SqliteDbTest, GivesBackEveryKindOfValue) {
  const TempDir dir;
  SqliteDb db = OpenOrDie(dir / "a.db");
  const std::string bytes("\0\xff\x01", 3);
  const std::string text("t\0ext", 5);
  SqliteStatement put = *db.Prepare("INSERT INTO item VALUES(?,?)");
  ASSERT_TRUE(put.Run({"null", nullptr}).ok());
  ASSERT_TRUE(put.Run({"integer", std::numeric_limits<int64_t>::min()}).ok());
  ASSERT_TRUE(put.Run({"text", text}).ok());
  ASSERT_TRUE(put.Run({"no text", ""}).ok());
  ASSERT_TRUE(put.Run({"bytes", SqliteValue::Blob(bytes)}).ok());

  SqliteStatement get = *db.Prepare("SELECT value FROM item WHERE key=?");
  const auto look_up = [&](const char* key) {
    EXPECT_TRUE(get.Bind({key}).ok());
    EXPECT_TRUE(*get.Step());
    return get.Value(0);
  };
  EXPECT_EQ(look_up("null").kind(), SqliteValue::Kind::kNull);
  EXPECT_EQ(look_up("integer").integer(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(look_up("text").text(), text);
  EXPECT_EQ(look_up("no text").kind(), SqliteValue::Kind::kText);
  EXPECT_EQ(look_up("bytes").text(), bytes);
  EXPECT_EQ(look_up("bytes").kind(), SqliteValue::Kind::kBlob);
}

TEST(SqliteDbTest, UndoesATransactionWhoseBodyFails) {
  const TempDir dir;
  SqliteDb db = OpenOrDie(dir / "a.db");
  const Status failed = db.Transaction([&]() -> Status {
    QRM_RETURN_IF_ERROR(db.Execute("INSERT INTO item VALUES('a', 1)"));
    return Errorf(StatusCode::kNotFound, "no");
  });
  EXPECT_EQ(failed.code(), StatusCode::kNotFound);
  EXPECT_EQ(Count(db), 0);

  EXPECT_TRUE(db.Transaction([&] { return db.Execute("INSERT INTO item VALUES('b', 2)"); }).ok());
  EXPECT_EQ(Count(db), 1);
}

TEST(SqliteDbTest, RunsTheStepsThatAreMissing) {
  const TempDir dir;
  {
    SqliteDb db = OpenOrDie(dir / "a.db");
    ASSERT_TRUE(db.Execute("INSERT INTO item VALUES('kept', 1)").ok());
  }
  SqliteSchema newer = Schema();
  newer.steps.emplace_back("ALTER TABLE item ADD COLUMN note TEXT");
  {
    SqliteDb db = OpenOrDie(dir / "a.db", newer);
    EXPECT_EQ(Count(db), 1);
    EXPECT_TRUE(db.Prepare("SELECT note FROM item").ok());
  }
  EXPECT_EQ(SqliteDb::Open(dir / "a.db", Schema()).status().code(), StatusCode::kUnimplemented);
}

TEST(SqliteDbTest, LeavesTheOldSchemaWhenAStepFails) {
  const TempDir dir;
  OpenOrDie(dir / "a.db");
  SqliteSchema broken = Schema();
  broken.steps.emplace_back("CREATE TABLE half(x); no sql");

  EXPECT_FALSE(SqliteDb::Open(dir / "a.db", broken).ok());
  SqliteDb db = OpenOrDie(dir / "a.db");
  EXPECT_FALSE(db.Prepare("SELECT x FROM half").ok());
}

TEST(SqliteDbTest, AppearsOnlyWhenItIsWhole) {
  const TempDir dir;
  std::ofstream(dir / "a.db.new") << "of a start that was killed";
  OpenOrDie(dir / "a.db");
  EXPECT_FALSE(fs::exists(dir / "a.db.new"));

  const SqliteSchema broken = {.application_id = 1, .steps = {"no sql"}};
  EXPECT_FALSE(SqliteDb::Open(dir / "b.db", broken).ok());
  EXPECT_FALSE(fs::exists(dir / "b.db"));
}

TEST(SqliteDbTest, SaysWhichProcessHoldsTheFile) {
  const TempDir dir;
  SqliteDb holder = OpenOrDie(dir / "a.db");
  StatusOr<SqliteDb> other =
      SqliteDb::Open(dir / "a.db", Schema(), {.busy_timeout = std::chrono::milliseconds(1)});
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(holder.Execute("BEGIN IMMEDIATE").ok());

  const Status refused = other->Transaction([] { return OkStatus(); });
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(refused), HasSubstr("another process holds it"));
}

TEST(SqliteDbTest, SaysThatALogIsMissingAndGoesOn) {
  const TempDir dir;
  {
    SqliteDb db = OpenOrDie(dir / "a.db");
    ASSERT_TRUE(db.Execute("INSERT INTO item VALUES('kept', 1)").ok());
  }
  EXPECT_THAT(OpenOrDie(dir / "a.db").notes(), IsEmpty());
  fs::remove(dir / "a.db-wal");

  SqliteDb db = OpenOrDie(dir / "a.db");
  EXPECT_THAT(db.notes(), SizeIs(1));
  EXPECT_THAT(db.notes()[0], HasSubstr("without its log"));
  EXPECT_EQ(Count(db), 1);
}

TEST(SqliteDbTest, BeginsAgainWhenLoadingFindsDamage) {
  const TempDir dir;
  {
    SqliteDb db = OpenOrDie(dir / "a.db");
    ASSERT_TRUE(db.Execute("INSERT INTO item VALUES('odd', 1)").ok());
  }
  std::vector<std::string> repairs;
  const auto load = [](SqliteDb& db) {
    return Count(db) == 0 ? OkStatus()
                          : Errorf(StatusCode::kDataLoss, "cannot load item: it is odd; look");
  };
  StatusOr<SqliteDb> db = OpenOrBeginAnew(dir / "a.db", Schema(), {}, load, repairs);

  ASSERT_TRUE(db.ok());
  EXPECT_EQ(Count(*db), 0);
  ASSERT_THAT(repairs, SizeIs(1));
  EXPECT_THAT(repairs[0], HasSubstr("it is odd"));
}

TEST(SqliteDbTest, LeavesTheFileWhenLoadingFailsOtherwise) {
  const TempDir dir;
  std::vector<std::string> repairs;
  const auto load = [](SqliteDb&) { return Errorf(StatusCode::kUnavailable, "later"); };

  EXPECT_EQ(OpenOrBeginAnew(dir / "a.db", Schema(), {}, load, repairs).status().code(),
            StatusCode::kUnavailable);
  EXPECT_THAT(repairs, IsEmpty());
  EXPECT_TRUE(fs::exists(dir / "a.db"));
}

TEST(MoveAsideTest, NeverTakesANameThatIsTaken) {
  const TempDir dir;
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    std::ofstream(dir / "a.db") << i;
    std::ofstream(dir / "a.db-wal") << i;
    names.push_back(*MoveAside(dir / "a.db"));
  }
  for (int i = 0; i < 3; ++i) {
    for (const std::string suffix : {"", "-wal"}) {
      std::ifstream file(names[static_cast<std::size_t>(i)] + suffix);
      int content = -1;
      file >> content;
      EXPECT_EQ(content, i);
    }
  }
}

TEST(DurableFileTest, FollowsNoLinkInThePlaceOfItsUnfinishedFile) {
  const TempDir dir;
  std::ofstream(dir / "target") << "of another program";
  fs::create_symlink(dir / "target", dir / "a.new");
  EXPECT_TRUE(WriteFileDurably(dir / "a", "content").ok());
  EXPECT_EQ(fs::file_size(dir / "target"), 18u);
  EXPECT_FALSE(fs::is_symlink(dir / "a"));
}

TEST(DurableFileTest, ReplacesAFileWholeAndPrivately) {
  const TempDir dir;
  ASSERT_TRUE(WriteFileDurably(dir / "a", "old").ok());
  ASSERT_TRUE(WriteFileDurably(dir / "a", "new content").ok());

  std::ifstream file(dir / "a");
  std::string content;
  std::getline(file, content);
  EXPECT_EQ(content, "new content");
  EXPECT_EQ(fs::status(dir / "a").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(WriteFileDurably(dir / "none/a", "x").code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace qrm::checkpoint::sqlite_db_test
