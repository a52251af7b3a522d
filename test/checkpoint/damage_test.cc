// Two thousand damaged checkpoints: each starts within two seconds, nothing is deleted, and no loss
// is silent.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/store.h"
#include "test/checkpoint/sample_state.h"
#include "test/support/rounds.h"
#include "test/support/temp_dir.h"

namespace qrm::checkpoint::damage_test {
namespace {

namespace fs = std::filesystem;
using test::PutSample;
using test::RandomChanges;
using test::TempDir;

constexpr uint32_t kRounds = test::Rounds(2000);

/// The name and content of every file in a directory.
using Files = std::map<std::string, std::string>;

Files ReadFiles(const std::string& directory) {
  Files files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file),
                                               std::istreambuf_iterator<char>()};
  }
  return files;
}

void WriteFiles(const std::string& directory, const Files& files) {
  for (const auto& [name, content] : files) {
    std::ofstream(fs::path(directory) / name, std::ios::binary) << content;
  }
}

/// A store as a crash leaves it: part of the state is in the database, the rest in its log.
struct Original {
  Original() {
    const TempDir dir = TempDir::InMemory();
    RandomChanges random(1);
    for (int session = 0; session < 2; ++session) {
      const OpenedStore opened = test::OpenStore(dir.path());
      for (int i = 0; i < 30; ++i) {
        const Change change = random.Next();
        EXPECT_TRUE(opened.store->Commit(change).ok());
        state = state.With(change);
      }
      files = ReadFiles(dir.path());
      files.erase("checkpoint.db-shm");
    }
  }

  NodeState state;
  Files files;
};

class Damage {
 public:
  explicit Damage(uint32_t seed) : random_(seed) {}

  /// Damages `files` in one of many ways and says how.
  std::string Apply(Files& files) {
    std::string& database = files["checkpoint.db"];
    std::string& log = files["checkpoint.db-wal"];
    switch (Draw(9)) {
      case 0:
        return Flip(database, "database");
      case 1:
        return Flip(log, "log");
      case 2:
        database.resize(Draw(database.size()));
        return "database truncated";
      case 3:
        log.resize(Draw(log.size()));
        return "log truncated";
      case 4:
        return ZeroPage(database, "database");
      case 5:
        return ZeroPage(log, "log");
      case 6:
        files.erase("checkpoint.db-wal");
        return "log missing";
      case 7:
        files.erase("checkpoint.db");
        return "database missing";
      default:
        database.clear();
        return "database empty";
    }
  }

 private:
  static constexpr std::size_t kPageBytes = 4096;

  std::size_t Draw(std::size_t below) { return random_() % below; }

  std::string Flip(std::string& content, const std::string& what) {
    const std::size_t count = std::size_t{1} << Draw(8);
    for (std::size_t i = 0; i < count; ++i) {
      char& byte = content[Draw(content.size())];
      byte = static_cast<char>(byte ^ static_cast<char>(1U << Draw(8)));
    }
    return std::to_string(count) + " bits of the " + what + " flipped";
  }

  std::string ZeroPage(std::string& content, const std::string& what) {
    const std::size_t at = Draw(content.size() / kPageBytes) * kPageBytes;
    content.replace(at, kPageBytes, kPageBytes, '\0');
    return "page at " + std::to_string(at) + " of the " + what + " zeroed";
  }

  std::mt19937 random_;
};

std::size_t BytesIn(const std::string& directory) {
  std::size_t bytes = 0;
  for (const auto& [name, content] : ReadFiles(directory)) {
    bytes += name.ends_with("-shm") ? 0 : content.size();
  }
  return bytes;
}

/// A log whose end is damaged looks as after a crash within the latest commits: only these may be
/// lost silently.
bool IsTornEnd(const std::string& damage) {
  return damage.find("log") != std::string::npos;
}

TEST(DamageTest, StartsWithEveryDatabaseAndSaysWhatIsLost) {
  const Original original;
  int unsaid = 0;
  int told = 0;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const TempDir dir = TempDir::InMemory();
    Files files = original.files;
    const std::string damage = Damage(round).Apply(files);
    WriteFiles(dir.path(), files);
    const std::size_t bytes = BytesIn(dir.path());

    const auto start = std::chrono::steady_clock::now();
    const OpenedStore opened = test::OpenStore(dir.path());
    const auto took = std::chrono::steady_clock::now() - start;

    SCOPED_TRACE(testing::Message() << "round " << round << ": " << damage);
    EXPECT_LT(took, std::chrono::seconds(2));
    EXPECT_GE(BytesIn(dir.path()), bytes);
    const bool whole = opened.state == original.state;
    told += opened.repairs.empty() ? 0 : 1;
    if (!whole && opened.repairs.empty()) {
      EXPECT_TRUE(IsTornEnd(damage));
      ++unsaid;
    }
    const Change change = PutSample("after");
    ASSERT_TRUE(opened.store->Commit(change).ok());
    ASSERT_EQ(test::OpenStore(dir.path()).state, opened.state.With(change));
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(told, static_cast<int>(kRounds / 2));
  RecordProperty("unsaid_torn_ends", unsaid);
}

TEST(DamageTest, KeepsAForeignDatabaseAndTheLogBesideItAsTheyAre) {
  Files files = Original().files;
  files["checkpoint.db"] = "{\"policyName\":\"none\"}";
  const TempDir dir = TempDir::InMemory();
  WriteFiles(dir.path(), files);

  const OpenedStore opened = test::OpenStore(dir.path());

  EXPECT_THAT(opened.repairs, testing::SizeIs(1));
  std::map<std::string, std::string> aside;  // suffix -> content
  for (const auto& [name, content] : ReadFiles(dir.path())) {
    if (name.starts_with("checkpoint.db.aside-")) {
      aside[name.ends_with("-wal") ? "-wal" : name.ends_with("-shm") ? "-shm" : ""] = content;
    }
  }
  EXPECT_TRUE(aside[""] == files["checkpoint.db"]);
  EXPECT_TRUE(aside["-wal"] == files["checkpoint.db-wal"]);
}

}  // namespace
}  // namespace qrm::checkpoint::damage_test
