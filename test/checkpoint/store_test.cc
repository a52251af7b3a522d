// The store's guarantees: nothing acknowledged is lost, and no damage stops a start.
#include "checkpoint/store.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <sqlite3.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/checkpoint/sample_state.h"
#include "test/support/temp_dir.h"

namespace qrm::checkpoint::store_test {
namespace {

namespace fs = std::filesystem;
using test::OpenStore;
using test::PutSample;
using test::RandomChanges;
using test::TempDir;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(StoreTest, StartsEmptyWithItsDirectoryMade) {
  const TempDir dir = TempDir::InMemory();
  const OpenedStore opened = OpenStore(dir / "deep/state");

  EXPECT_THAT(opened.repairs, IsEmpty());
  EXPECT_EQ(opened.state, NodeState());
  EXPECT_EQ(fs::status(dir / "deep/state").permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(dir / "deep/state/checkpoint.db").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST(StoreTest, GivesBackCommittedRecords) {
  const TempDir dir = TempDir::InMemory();
  {
    const OpenedStore opened = OpenStore(dir.path());
    ASSERT_TRUE(opened.store->Commit(PutSample("a")).ok());
  }
  const OpenedStore again = OpenStore(dir.path());

  EXPECT_THAT(again.repairs, IsEmpty());
  EXPECT_EQ(again.state, NodeState().With(PutSample("a")));
}

/// Random changes that use every field: after each restart memory and disk are the same.
TEST(StoreTest, HoldsTheStateThatMemoryHolds) {
  const TempDir dir = TempDir::InMemory();
  RandomChanges random(3);
  NodeState expected;
  for (int restart = 0; restart < 25; ++restart) {
    const OpenedStore opened = OpenStore(dir.path());
    ASSERT_THAT(opened.repairs, IsEmpty());
    ASSERT_EQ(opened.state, expected);
    for (int i = 0; i < 20; ++i) {
      const Change change = random.Next();
      ASSERT_TRUE(opened.store->Commit(change).ok());
      expected = expected.With(change);
    }
  }
}

/// Where it changes, all of its containers' rows say so.
TEST(StoreTest, KeepsOneTruthOfAPodThatHasManyContainers) {
  const TempDir dir = TempDir::InMemory();
  const OpenedStore opened = OpenStore(dir.path());
  ASSERT_TRUE(opened.store->Commit(PutSample("a", "first")).ok());
  Change renamed = PutSample("a", "second");
  renamed.put_containers[0].pod.name = "other";
  ASSERT_TRUE(opened.store->Commit(renamed).ok());

  EXPECT_EQ(OpenStore(dir.path()).state, opened.store->state());
}

TEST(StoreTest, KnowsWhichOfTwoPodsOfOneNameCameLastWhateverIsWrittenLater) {
  const TempDir dir = TempDir::InMemory();
  const auto of_one_name = [](const std::string& uid) {
    Change change = PutSample(uid);
    change.put_containers[0].pod.name = "web";
    return change;
  };
  {
    const OpenedStore opened = OpenStore(dir.path());
    for (const char* uid : {"old", "new", "old"}) {
      ASSERT_TRUE(opened.store->Commit(of_one_name(uid)).ok());
    }
  }
  EXPECT_EQ(OpenStore(dir.path()).state.FindPodByName("default", "web")->meta.uid, "new");
}

TEST(StoreTest, RejectsAChangeThatCannotBeStoredAndGoesOn) {
  const TempDir dir = TempDir::InMemory();
  const OpenedStore opened = OpenStore(dir.path());
  Change not_text = PutSample("a");
  not_text.put_containers[0].pod.labels.Edit()["key"] = "\xff\xfe";
  Change not_finite = PutSample("a");
  not_finite.put_containers[0].record.requests.Edit()["cpu"] =
      std::numeric_limits<double>::infinity();
  Change no_number = PutSample("a");
  no_number.put_containers[0].record.allocations["cpu"].Edit().quantity = std::nan("");

  for (const Change& change : {not_text, not_finite, no_number}) {
    EXPECT_EQ(opened.store->Commit(change).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(opened.store->Commit(PutSample("b")).ok());
  EXPECT_EQ(OpenStore(dir.path()).state, NodeState().With(PutSample("b")));
}

TEST(StoreTest, CommitsAllOfAChangeOrNothing) {
  const TempDir dir = TempDir::InMemory();
  const OpenedStore opened = OpenStore(dir.path());
  ASSERT_TRUE(opened.store->Commit(PutSample("a")).ok());
  Change half_bad = PutSample("b");
  half_bad.remove_pods = {"a"};
  half_bad.put_containers.push_back(test::SampleContainer("c"));
  half_bad.put_containers.back().record.applied.Edit()["\xff"] = "";

  EXPECT_FALSE(opened.store->Commit(half_bad).ok());
  EXPECT_EQ(OpenStore(dir.path()).state, NodeState().With(PutSample("a")));
}

TEST(StoreTest, IsInspectedWhileItIsInUse) {
  const TempDir dir = TempDir::InMemory();
  EXPECT_EQ(InspectSqliteStore(dir.path()).status().code(), StatusCode::kNotFound);
  const OpenedStore opened = OpenStore(dir.path());
  ASSERT_TRUE(opened.store->Commit(PutSample("a")).ok());

  const StatusOr<NodeState> seen = InspectSqliteStore(dir.path());
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(*seen, NodeState().With(PutSample("a")));
  ASSERT_TRUE(opened.store->Commit(PutSample("b")).ok());
}

void Overwrite(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

/// An edit of the file with the sqlite3 shell.
void RunSql(const std::string& sql, const std::string& path) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
}

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A database of a later release: one more column, and its version in the header and in a row.
void MakeNewer(const std::string& path) {
  RunSql("ALTER TABLE container ADD COLUMN colour TEXT", path);
  RunSql("UPDATE schema_version SET version=99", path);
  RunSql("PRAGMA user_version=99", path);
}

TEST(StoreTest, RejectsASoundDatabaseOfANewerSchemaAndTouchesNothing) {
  const TempDir dir = TempDir::InMemory();
  ASSERT_TRUE(OpenStore(dir.path()).store->Commit(PutSample("a")).ok());
  MakeNewer(dir / "checkpoint.db");
  const std::string before = ContentOf(dir / "checkpoint.db");

  const Status refused = OpenSqliteStore(dir.path()).status();

  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(refused),
              AllOf(HasSubstr("its schema is version 99, this program knows 1 to 1"),
                    HasSubstr("install the release that wrote it"),
                    HasSubstr("qrmctl checkpoint downgrade --state-dir " + dir.path())));
  EXPECT_EQ(ContentOf(dir / "checkpoint.db"), before);
  EXPECT_THAT(NamesIn(dir.path()), testing::Not(testing::Contains(HasSubstr("aside"))));
}

TEST(StoreTest, DowngradeKeepsWhatThisReleaseKnowsAndTheNewerFile) {
  const TempDir dir = TempDir::InMemory();
  ASSERT_TRUE(OpenStore(dir.path()).store->Commit(PutSample("a")).ok());
  MakeNewer(dir / "checkpoint.db");

  const StatusOr<std::string> kept = DowngradeSqliteStore(dir.path());

  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(fs::exists(*kept));
  EXPECT_EQ(OpenStore(dir.path()).state, NodeState().With(PutSample("a")));
}

TEST(StoreTest, DowngradeRejectsWhatNeedsNone) {
  const TempDir dir = TempDir::InMemory();
  ASSERT_TRUE(OpenStore(dir.path()).store->Commit(PutSample("a")).ok());

  EXPECT_EQ(DowngradeSqliteStore(dir.path()).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(OpenStore(dir.path()).state, NodeState().With(PutSample("a")));
}

TEST(StoreTest, ReportsDamagedNamesInTextThatEveryAnswerCanCarry) {
  const TempDir dir = TempDir::InMemory();
  ASSERT_TRUE(OpenStore(dir.path()).store->Commit(PutSample("a")).ok());
  RunSql("PRAGMA writable_schema=ON; UPDATE sqlite_schema SET name=CAST(x'70E7' AS TEXT), sql='no'",
         dir / "checkpoint.db");

  const OpenedStore opened = OpenStore(dir.path());

  ASSERT_THAT(opened.repairs, SizeIs(1));
  EXPECT_THAT(opened.repairs[0], HasSubstr("(p\\xe7)"));
}

struct DamageCase {
  std::string name;
  std::function<void(const std::string& path)> damage;
  std::string says;
};

class DamagedStoreTest : public testing::TestWithParam<DamageCase> {};

TEST_P(DamagedStoreTest, MovesItAsideAndBeginsAgain) {
  const TempDir dir = TempDir::InMemory();
  const std::string path = dir / "checkpoint.db";
  ASSERT_TRUE(OpenStore(dir.path()).store->Commit(PutSample("a")).ok());
  GetParam().damage(path);

  const OpenedStore opened = OpenStore(dir.path());

  EXPECT_EQ(opened.state, NodeState());
  ASSERT_THAT(opened.repairs, SizeIs(1));
  EXPECT_THAT(opened.repairs[0], HasSubstr(GetParam().says));
  EXPECT_THAT(opened.repairs[0], HasSubstr("moved to " + path + ".aside-20"));
  EXPECT_THAT(NamesIn(dir.path()), testing::Contains(testing::StartsWith("checkpoint.db.aside-")));
  ASSERT_TRUE(opened.store->Commit(PutSample("b")).ok());
  EXPECT_EQ(OpenStore(dir.path()).state, NodeState().With(PutSample("b")));
}

const DamageCase kDamages[] = {
    {"Empty", [](const std::string& path) { Overwrite(path, ""); }, "it is empty"},
    {"NoDatabase", [](const std::string& path) { Overwrite(path, std::string(9000, 'x')); },
     "it is not a database"},
    {"Truncated", [](const std::string& path) { fs::resize_file(path, 5000); }, "malformed"},
    {"Directory",
     [](const std::string& path) {
       fs::remove(path);
       fs::create_directory(path);
       Overwrite(path + "/kept", "kept");
     },
     "it is not a file"},
    {"LogWithoutDatabase",
     [](const std::string& path) {
       fs::remove(path);
       Overwrite(path + "-wal", "something");
     },
     "it is gone although its log is there"},
    {"OtherProgram", [](const std::string& path) { RunSql("PRAGMA application_id=7", path); },
     "it belongs to another program (application id 7"},
    {"NewerSchema", [](const std::string& path) { RunSql("PRAGMA user_version=99", path); },
     "its schema is version 99, this program knows 1 to 1"},
    {"ChangedRecord",
     [](const std::string& path) { RunSql("UPDATE container SET record=x'00'", path); },
     "a row does not match its checksum"},
    {"ChangedPod", [](const std::string& path) { RunSql("UPDATE container SET pod='b'", path); },
     "a row does not match its checksum"},
    {"OneContainerTwice",
     [](const std::string& path) {
       RunSql("INSERT INTO container SELECT 99, pod, name, record, sum FROM container", path);
     },
     "container main of pod a is there twice"},
    {"LostTable", [](const std::string& path) { RunSql("DROP TABLE container", path); },
     "no such table"},
};
INSTANTIATE_TEST_SUITE_P(Damages, DamagedStoreTest, testing::ValuesIn(kDamages),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::checkpoint::store_test
