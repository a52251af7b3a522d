// A start with a checkpoint that qrmd must not use, or cannot read yet.
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include <linux/capability.h>
#include <sqlite3.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/id_set.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::test::start_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kMorePods = 6;

/// Runs from the top of the tree. Pods of role "database" get exclusive CPUs.
class StartTest : public testing::Test {
 protected:
  Status Start() { return node_.Start(2); }
  Status RunPod(const std::string& name, const std::string& role) {
    return runtime_.RunPod({.name = name,
                            .uid = "uid-" + name,
                            .labels = {{"katalyst.kubewharf.io/pod_role", role}},
                            .container = Container()});
  }
  static ContainerSpec Container() {
    return {.milli_cpus = 4000, .memory_bytes = int64_t{1} << 30};
  }
  CpuSet Cpus(const std::string& pod) {
    const auto options = runtime_.RunOptions(pod);
    const auto resources = options.find("linux_container_resources");
    const std::string cpus =
        resources == options.end() ? "" : resources->value("cpusetCpus", std::string());
    return CpuSet::Parse(cpus).value_or(CpuSet());
  }
  uint64_t Reconciles() const {
    const auto status = node_.GetStatus();
    return status.ok() ? status->reconcile().runs() : 0;
  }

  const TempDir dir_;
  const std::string programs_ = fs::canonical("/proc/self/exe").parent_path();
  const std::string state_ = dir_ / "node/state/qrmd";
  SimulatedRuntime runtime_{dir_.path()};
  Node node_{{.bin_dir = programs_,
              .work_dir = dir_ / "node",
              .config = "test/crash/builtin.yaml",
              .nri_socket = runtime_.nri_socket(),
              .cri_socket = runtime_.cri_socket(),
              .builtin_plugins = "cpu,memory",
              .reconcile_period = "100ms"}};
};

/// The databases in `directory`, also those that were moved aside, with hashes of their contents.
std::map<std::string, std::size_t> DatabasesIn(const std::string& directory) {
  std::map<std::string, std::size_t> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name.ends_with("-wal") || name.ends_with("-shm") || name == "qrmd.lock") {
      continue;  // empty, and created by any reader
    }
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    files[name] = std::hash<std::string>()(content);
  }
  return files;
}

/// A database of a later release: one more column, and its version twice.
void MakeNewer(const std::string& path) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  for (const char* change : {"ALTER TABLE container ADD COLUMN colour TEXT",
                             "CREATE TABLE IF NOT EXISTS schema_version(version INTEGER NOT NULL)",
                             "UPDATE schema_version SET version=99", "PRAGMA user_version=99"}) {
    ASSERT_EQ(sqlite3_exec(database, change, nullptr, nullptr, nullptr), SQLITE_OK) << change;
  }
  sqlite3_close(database);
}

TEST_F(StartTest, CheckpointOfANewerReleaseStopsQrmdWithBothVersionsAndBothCures) {
  ASSERT_TRUE(IsOk(Start()));
  ASSERT_TRUE(IsOk(RunPod("alone", "database")));
  ASSERT_TRUE(IsOk(RunPod("shared", "")));
  const CpuSet alone = Cpus("alone");
  const CpuSet shared = Cpus("shared");
  ASSERT_TRUE(IsOk(node_.Stop()));
  ASSERT_NO_FATAL_FAILURE(MakeNewer(state_ + "/checkpoint.db"));
  const auto before = DatabasesIn(state_);
  const std::size_t updates = runtime_.updates();

  EXPECT_THAT(MessageOf(Start()),
              AllOf(HasSubstr("its schema is version 99, this program knows 1 to "),
                    HasSubstr("install the release that wrote it"),
                    HasSubstr("qrmctl checkpoint downgrade --state-dir " + state_)));
  EXPECT_FALSE(node_.DaemonRuns());
  EXPECT_EQ(DatabasesIn(state_), before) << "nothing is moved or written";
  EXPECT_EQ(runtime_.updates(), updates) << "no container is touched";

  const auto downgraded =
      RunCommand({programs_ + "/qrmctl", "checkpoint", "downgrade", "--state-dir", state_});
  ASSERT_TRUE(downgraded.ok()) << downgraded.status();
  ASSERT_TRUE(IsOk(Start()));
  EXPECT_EQ(node_.ListPods()->pods_size(), 2);
  EXPECT_EQ(Cpus("alone"), alone);
  EXPECT_EQ(Cpus("shared"), shared);
  EXPECT_TRUE(IsOk(RunPod("after", "database")));
  EXPECT_FALSE(Cpus("after").Intersects(alone));
}

/// From now on no process that this test starts may read what its owner may not.
bool DropRightToReadAll() {
  return ::geteuid() == 0 && ::prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE) == 0 &&
         ::prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH) == 0;
}

TEST_F(StartTest, NothingIsReleasedOrGivenTwiceWhileTheCheckpointCannotBeRead) {
  if (!DropRightToReadAll()) {
    GTEST_SKIP() << "needs root, to take rights from qrmd";
  }
  ASSERT_TRUE(IsOk(Start()));
  ASSERT_TRUE(IsOk(RunPod("alone", "database")));
  ASSERT_TRUE(IsOk(RunPod("resting", "database")));
  const CpuSet alone = Cpus("alone");
  const CpuSet resting = Cpus("resting");
  ASSERT_TRUE(IsOk(node_.Stop()));
  ASSERT_TRUE(IsOk(runtime_.EndContainer("resting", Container().name)));  // until it is restarted
  fs::permissions(state_ + "/checkpoint.db", fs::perms::none);

  ASSERT_TRUE(IsOk(Start()));
  EXPECT_THAT(MessageOf(RunPod("refused", "")), HasSubstr("checkpoint.db"));
  const uint64_t reconciles = Reconciles();
  EXPECT_TRUE(Await([&] { return Reconciles() > reconciles + 2; }));
  EXPECT_EQ(Cpus("alone"), alone);
  fs::permissions(state_ + "/checkpoint.db", fs::perms::owner_read | fs::perms::owner_write);

  for (int i = 0; i < kMorePods; ++i) {
    const std::string name = "more" + std::to_string(i);
    ASSERT_TRUE(IsOk(RunPod(name, i % 2 == 0 ? "" : "database")));
    EXPECT_FALSE(Cpus(name).Empty());
    EXPECT_FALSE(Cpus(name).Intersects(alone)) << name << ": " << ToString(Cpus(name));
    EXPECT_FALSE(Cpus(name).Intersects(resting)) << name << ": " << ToString(Cpus(name));
  }
  ASSERT_TRUE(IsOk(runtime_.AddContainer("resting", Container())));
  EXPECT_EQ(Cpus("resting"), resting);
}

}  // namespace
}  // namespace qrm::test::start_test
