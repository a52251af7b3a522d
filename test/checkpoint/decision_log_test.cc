// Recorded decisions outlive the process, stay few, and cost admissions nothing.
#include "checkpoint/decision_log.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace qrm::checkpoint::decision_log_test {
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

/// Waits for the disk before more entries are queued than the log keeps there.
void Add(DecisionLog& log, const DecisionTrace& trace) {
  log.Add(trace, [json = trace.json] { return json; });
  if (log.added() % DecisionLog::kMostQueued == 0) {
    log.Read();
  }
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

std::vector<std::string> Types(DecisionLog& log) {
  std::vector<std::string> types;
  for (const DecisionTrace& trace : log.Read()) {
    types.push_back(trace.type);
  }
  return types;
}

TEST(DecisionLogTest, KeepsOtherEventsBesideDecisionsForTheNextProcess) {
  const TempDir dir = TempDir::InMemory();
  {
    DecisionLog log(dir.path());
    Add(log, Sample("web"));
    log.Note({.type = "pool", .message = "online: 0-3 -> 0-1", .by = "uid 0, pid 7"});
    log.Note({.type = "drift", .message = std::string(5000, 'x'), .key = {"uid-web", "main"}});
  }
  DecisionLog again(dir.path());
  EXPECT_THAT(Types(again), ElementsAre("", "pool", "drift"));
  const std::vector<DecisionTrace> traces = again.Read();
  EXPECT_EQ(traces[1].json, R"({"by":"uid 0, pid 7","message":"online: 0-3 -> 0-1"})");
  EXPECT_EQ(traces[2].key.container, "main");
  EXPECT_LT(traces[2].json.size(), 1100u);
}

TEST(DecisionLogTest, EventsPushOutNoDecisionsAndNoneOfThemIsFolded) {
  const TempDir dir = TempDir::InMemory();
  DecisionLog log(dir.path());
  Add(log, Sample("web"));
  for (std::size_t i = 0; i < 3 * DecisionLog::kKept; ++i) {
    log.Note({.type = "drift", .message = "the same again"});
    if (i % 100 == 0) {
      log.Read();  // waits for the disk
    }
  }
  const std::vector<std::string> types = Types(log);
  ASSERT_THAT(types, SizeIs(DecisionLog::kKept + 1));
  EXPECT_EQ(types.front(), "");
  EXPECT_EQ(types.back(), "drift");
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

TEST(DecisionLogTest, KeepsTheLatestInMemoryWhileTheDiskRejectsThem) {
  const TempDir dir = TempDir::InMemory();
  DecisionLog log(dir.path());
  fs::create_directory(dir / "decisions.jsonl");
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

TEST(DecisionLogTest, QueuesTheLatestOnlyForADiskThatHangs) {
  const TempDir dir = TempDir::InMemory();
  DecisionLog log(dir.path());
  std::promise<void> hangs;
  std::promise<void> goes_on;
  log.Add(Sample("hanging"), [&] {
    hangs.set_value();
    goes_on.get_future().wait();
    return std::string("{}");
  });
  hangs.get_future().wait();
  std::size_t composed = 0;
  for (std::size_t i = 0; i < DecisionLog::kMostQueued + 10; ++i) {
    log.Add(Sample(std::to_string(i)), [&composed] {
      ++composed;
      return std::string("{}");
    });
  }
  EXPECT_THAT(log.problem(), HasSubstr("the disk has not answered while 1000 decisions came"));
  goes_on.set_value();
  const std::vector<std::string> names = Names(log);
  EXPECT_EQ(composed, DecisionLog::kMostQueued);
  EXPECT_EQ(names.front(), "10");
  EXPECT_EQ(names.back(), std::to_string(DecisionLog::kMostQueued + 9));
  EXPECT_EQ(log.problem(), "");
}

struct Planted {
  std::string name;  // CamelCase: part of the test's name
  std::function<void(const std::string& path)> plant;
};

class PlantedDecisionLogTest : public testing::TestWithParam<Planted> {};

// Not in memory: the end of a directory is at 2^63 on a disk, and reading backwards from there used
// up all memory.
TEST_P(PlantedDecisionLogTest, IsMovedAsideAndDecisionsAreKept) {
  for (const std::string name : {"decisions.jsonl", "decisions.older.jsonl"}) {
    const TempDir dir;
    GetParam().plant(dir / name);
    {
      DecisionLog log(dir.path());
      Add(log, Sample("web"));
    }
    DecisionLog again(dir.path());
    EXPECT_THAT(Names(again), ElementsAre("web")) << name;
    EXPECT_EQ(again.problem(), "") << name;
    const auto is_aside = [&](const fs::directory_entry& entry) {
      return entry.path().filename().string().starts_with(name + ".aside-");
    };
    EXPECT_EQ(std::count_if(fs::directory_iterator(dir.path()), {}, is_aside), 1) << name;
  }
}

const Planted kPlanted[] = {
    {"Directory", [](const std::string& path) { fs::create_directory(path); }},
    {"Link", [](const std::string& path) { fs::create_symlink("/dev/zero", path); }},
    {"Pipe", [](const std::string& path) { ::mkfifo(path.c_str(), 0600); }},
    {"HugeFile",
     [](const std::string& path) {
       std::ofstream(path).put('{');
       fs::resize_file(path, std::uintmax_t{1} << 40);
     }},
};
INSTANTIATE_TEST_SUITE_P(Planted, PlantedDecisionLogTest, testing::ValuesIn(kPlanted),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(DecisionLogTest, FollowsNoLink) {
  const TempDir dir = TempDir::InMemory();
  const TempDir other = TempDir::InMemory();
  fs::create_symlink(other / "file", dir / "decisions.jsonl");
  DecisionLog log(dir.path());
  Add(log, Sample("web"));
  EXPECT_THAT(Names(log), ElementsAre("web"));
  EXPECT_FALSE(fs::exists(other / "file"));
}

DecisionTrace Refused(const std::string& name, const std::string& why, int second) {
  DecisionTrace trace = Sample(name);
  trace.time = std::chrono::system_clock::from_time_t(second);
  trace.admitted = false;
  trace.json = R"({"result":"rejected","message":")" + why + "\"}";
  return trace;
}

/// Fills the log so often that none of its former entries is left.
void Flood(DecisionLog& log, const std::string& prefix) {
  for (std::size_t i = 0; i < 3 * DecisionLog::kKept; ++i) {
    Add(log, Sample(prefix + std::to_string(i)));
  }
}

TEST(DecisionLogTest, KeepsWhyPodsOnTheNodeWereAdmittedWhateverComesAfter) {
  const TempDir dir = TempDir::InMemory();
  const IsOnNode is_on_node = [](const std::string& uid) { return uid == "uid-db"; };
  {
    DecisionLog log(dir.path(), is_on_node);
    Add(log, Sample("db"));
    Add(log, Sample("gone"));
    Add(log, Refused("db", "no CPU", 8));
    Flood(log, "a");
  }
  DecisionLog again(dir.path(), is_on_node);
  Flood(again, "b");
  const std::vector<std::string> names = Names(again);
  ASSERT_THAT(names, SizeIs(DecisionLog::kKept + 2));
  EXPECT_THAT((std::vector<std::string>(names.begin(), names.begin() + 2)),
              ElementsAre("db", "db"));
}

TEST(DecisionLogTest, KeepsDecisionsAboutAllPodsOnTheNode) {
  const TempDir dir = TempDir::InMemory();
  DecisionLog log(dir.path(), [](const std::string& uid) { return uid.starts_with("uid-here"); });
  for (std::size_t i = 0; i < 2 * DecisionLog::kKept; ++i) {
    Add(log, Sample("here" + std::to_string(i)));
  }
  Flood(log, "a");
  std::vector<std::string> names = Names(log);
  EXPECT_THAT(names, SizeIs(3 * DecisionLog::kKept));
  EXPECT_EQ(names.front(), "here0");
}

TEST(DecisionLogTest, StaysWithinItsBytesWithAnyPodsOnTheNode) {
  const TempDir dir = TempDir::InMemory();
  DecisionLog log(dir.path(), [](const std::string& /*uid*/) { return true; });
  for (int i = 0; i < 40; ++i) {
    DecisionTrace large = Sample(std::to_string(i));
    large.json = "\"" + std::string(1 << 20, 'x') + "\"";
    Add(log, large);
  }
  EXPECT_GE(log.Read().size(), 15u);
  EXPECT_LE(fs::file_size(dir / "decisions.jsonl"), DecisionLog::kMostBytes);
  EXPECT_LE(fs::file_size(dir / "decisions.older.jsonl"), DecisionLog::kMostBytes);
}

// A pod that kubelet tries again each minute for days.
TEST(DecisionLogTest, RejectionsForOneReasonDriveNoOtherOut) {
  const TempDir dir = TempDir::InMemory();
  DecisionLog log(dir.path());
  Add(log, Refused("other", "no memory", 1));
  for (int i = 0; i < 5000; ++i) {
    Add(log, Refused("web", std::to_string(i % 7) + " CPUs are free", 2 + i));
  }
  const std::vector<DecisionTrace> kept = log.Read();
  ASSERT_THAT(kept, testing::Not(testing::IsEmpty()));
  EXPECT_EQ(kept.front(), Refused("other", "no memory", 1));
  const std::vector<DecisionTrace> folded = Folded(kept);
  ASSERT_THAT(folded, SizeIs(2));
  EXPECT_EQ(folded[1].time, std::chrono::system_clock::from_time_t(5001));
  EXPECT_EQ(folded[1].json,
            R"({"result":"rejected","message":"1 CPUs are free","equal_ones_before":4999,)"
            R"("first_unix_millis":2000})");
}

TEST(DecisionLogTest, AnAdmissionEndsARunOfRejections) {
  DecisionTrace admitted = Sample("web");
  const std::vector<DecisionTrace> traces = {Refused("web", "no CPU", 1), admitted,
                                             Refused("web", "no CPU", 8)};
  EXPECT_EQ(Folded(traces), traces);
}

// Between the new older file and the end of the current one.
TEST(DecisionLogTest, FoldThatEndedHalfWayRepeatsNothing) {
  const TempDir dir = TempDir::InMemory();
  std::vector<std::string> before;
  {
    DecisionLog log(dir.path());
    for (std::size_t i = 0; i < DecisionLog::kKept; ++i) {
      Add(log, Sample(std::to_string(i)));
    }
    before = Names(log);
  }
  const std::string full = dir / "full";
  fs::copy_file(dir / "decisions.jsonl", full);
  {
    DecisionLog log(dir.path());
    Add(log, Sample("next"));
  }
  fs::rename(full, dir / "decisions.jsonl");
  DecisionLog log(dir.path());
  EXPECT_EQ(Names(log), before);
}

}  // namespace
}  // namespace qrm::checkpoint::decision_log_test
