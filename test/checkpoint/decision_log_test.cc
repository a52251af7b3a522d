// What explains the past outlives the process, stays small, and costs nobody anything.
#include "checkpoint/decision_log.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace qrm::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

DecisionTrace Sample(const std::string& name) {
  return {.key = {"uid-" + name, "main"},
          .pod_namespace = "shop",
          .pod_name = name,
          .time = std::chrono::system_clock::from_time_t(7) + std::chrono::microseconds(3),
          .admitted = true,
          .commit = std::chrono::microseconds(90),
          .json = R"({"result":"admitted"})"};
}

void Add(DecisionLog& log, const DecisionTrace& trace) {
  log.Add(trace, [json = trace.json] { return json; });
}

std::vector<std::string> Names(DecisionLog& log) {
  std::vector<std::string> names;
  for (const DecisionTrace& trace : log.Read()) {
    names.push_back(trace.pod_name);
  }
  return names;
}

TEST(DecisionLogTest, GivesBackWhatItWasGivenAlsoToTheNextProcess) {
  const TempDir dir = TempDir::InMemory();
  DecisionTrace rejected = Sample("with \"quotes\", \"decision\": and \n lines");
  rejected.admitted = false;
  rejected.commit.reset();
  {
    DecisionLog log(dir.path());
    Add(log, Sample("web"));
    Add(log, rejected);
    EXPECT_THAT(log.Read(), ElementsAre(Sample("web"), rejected));
  }
  DecisionLog again(dir.path());
  Add(again, Sample("db"));
  EXPECT_THAT(again.Read(), ElementsAre(Sample("web"), rejected, Sample("db")));
  EXPECT_EQ(fs::status(dir / "decisions.jsonl").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST(DecisionLogTest, KeepsTheLatestOnlyAndTwoFilesOfThem) {
  const TempDir dir = TempDir::InMemory();
  DecisionLog log(dir.path());
  for (std::size_t i = 0; i < 3 * DecisionLog::kKept + 5; ++i) {
    Add(log, Sample(std::to_string(i)));
  }
  const std::vector<std::string> names = Names(log);
  ASSERT_THAT(names, SizeIs(DecisionLog::kKept));
  EXPECT_EQ(names.front(), std::to_string(2 * DecisionLog::kKept + 5));
  EXPECT_EQ(names.back(), std::to_string(3 * DecisionLog::kKept + 4));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 2);
}

TEST(DecisionLogTest, StaysWithinItsBytes) {
  const TempDir dir = TempDir::InMemory();
  DecisionLog log(dir.path());
  DecisionTrace large = Sample("large");
  large.json = "\"" + std::string(1 << 20, 'x') + "\"";
  for (int i = 0; i < 40; ++i) {
    Add(log, large);
  }
  EXPECT_GE(log.Read().size(), 15u);
  EXPECT_LE(fs::file_size(dir / "decisions.jsonl"), DecisionLog::kMostBytes);
  EXPECT_LE(fs::file_size(dir / "decisions.older.jsonl"), DecisionLog::kMostBytes);
}

TEST(DecisionLogTest, LeavesOutWhatItCannotReadAndGoesOn) {
  const TempDir dir = TempDir::InMemory();
  {
    DecisionLog log(dir.path());
    Add(log, Sample("first"));
  }
  std::ofstream(dir / "decisions.jsonl", std::ios::app)
      << "no json\n{\"pod_uid\":7,\"decision\":{}}\n{\"pod_uid\":\"cut by a power lo";
  DecisionLog log(dir.path());
  Add(log, Sample("second"));
  EXPECT_THAT(Names(log), ElementsAre("first", "second"));
}

TEST(DecisionLogTest, KeepsTheLatestInMemoryWhileTheDiskRefusesThem) {
  const TempDir dir = TempDir::InMemory();
  fs::create_directory(dir / "decisions.jsonl");
  DecisionLog log(dir.path());
  for (int i = 0; i < 150; ++i) {
    Add(log, Sample(std::to_string(i)));
  }
  EXPECT_THAT(log.Read(), SizeIs(100));
  EXPECT_THAT(log.problem(), HasSubstr("cannot write " + dir / "decisions.jsonl"));
  fs::remove(dir / "decisions.jsonl");
  Add(log, Sample("last"));
  const std::vector<std::string> names = Names(log);
  EXPECT_THAT(names, SizeIs(101));
  EXPECT_EQ(names.back(), "last");
  EXPECT_EQ(log.problem(), "");
  EXPECT_TRUE(fs::is_regular_file(dir / "decisions.jsonl"));
}

TEST(DecisionLogTest, FollowsNoLink) {
  const TempDir dir = TempDir::InMemory();
  const TempDir other = TempDir::InMemory();
  fs::create_symlink(other / "file", dir / "decisions.jsonl");
  DecisionLog log(dir.path());
  Add(log, Sample("web"));
  EXPECT_THAT(Names(log), ElementsAre("web"));
  EXPECT_FALSE(fs::exists(other / "file"));
}

}  // namespace
}  // namespace qrm::checkpoint
