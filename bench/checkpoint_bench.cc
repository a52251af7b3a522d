// The cost of durability: one container's commit on a large node beside the same on a small one and
// beside one append and fdatasync of the same bytes, in turns; and a node's restart.
//   checkpoint_bench [--smoke]
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "bench/bench_dir.h"
#include "bench/command_line.h"
#include "bench/target.h"
#include "checkpoint/store.h"
#include "test/checkpoint/sample_state.h"
#include "test/support/synced_log.h"

namespace qrm::bench {
namespace {

using checkpoint::Change;
using checkpoint::OpenedStore;

struct Sizes {
  std::size_t containers = 10000;  // of the large node
  int commits = 200;               // of each kind, in turns
  int restores = 11;
};

/// UIDs are not ordered, like the API server's.
std::string Uid(std::size_t number) {
  const std::size_t mixed = (number + 1) * 0x9e3779b97f4a7c15;
  return fmt::format("{:08x}-{:04x}-4000-8000-{:012x}", mixed >> 32, mixed >> 16 & 0xffff, number);
}

Change PutContainers(std::size_t first, std::size_t count) {
  Change change;
  for (std::size_t i = first; i < first + count; ++i) {
    change.put_containers.push_back(test::SampleContainer(Uid(i)));
  }
  return change;
}

/// A store with `containers` that takes one more each time.
class GrowingStore {
 public:
  explicit GrowingStore(std::size_t containers)
      : opened_(test::OpenStore(dir_.path())), next_(containers) {
    QRM_CHECK(opened_.store->Commit(PutContainers(0, containers)).ok());
  }

  /// The time of one more durable commit. Units: microseconds.
  double CommitOne() {
    const Change change = PutContainers(next_++, 1);
    return MicrosecondsOf([&] { QRM_CHECK(opened_.store->Commit(change).ok()); });
  }

 private:
  const BenchDir dir_;
  const OpenedStore opened_;
  std::size_t next_;
};

/// The bytes of such a commit, by the growth of a new store's log.
std::size_t BytesPerCommit() {
  constexpr std::size_t kCommits = 20;
  const BenchDir dir;
  const OpenedStore opened = test::OpenStore(dir.path());
  for (std::size_t i = 0; i < kCommits; ++i) {
    QRM_CHECK(opened.store->Commit(PutContainers(i, 1)).ok());
  }
  return std::filesystem::file_size(dir / "checkpoint.db-wal") / kCommits;
}

/// Takes turns, so that disturbances by the machine and its disk affect all three alike.
bool JudgeCommits(const Sizes& sizes) {
  GrowingStore small(10);
  GrowingStore large(sizes.containers);
  const BenchDir dir;
  test::SyncedLog log(dir / "log", BytesPerCommit(), test::SyncedLog::Length::kGrows);
  std::vector<double> small_us;
  std::vector<double> large_us;
  std::vector<double> append_us;
  for (int i = 0; i < sizes.commits; ++i) {
    small_us.push_back(small.CommitOne());
    large_us.push_back(large.CommitOne());
    append_us.push_back(MicrosecondsOf([&] { log.Append(); }));
  }
  const double commit = Median(large_us);
  const bool flat =
      Judge("commit at 10,000 containers / at 10", 1.5, commit / Median(small_us), "x");
  return Judge("commit at 10,000 containers / append and fdatasync", 1.5,
               commit / Median(append_us), "x") &&
         flat;
}

bool JudgeRestore(const Sizes& sizes) {
  const BenchDir dir;
  QRM_CHECK(test::OpenStore(dir.path()).store->Commit(PutContainers(0, sizes.containers)).ok());
  std::vector<double> restore_ms;
  for (int i = 0; i < sizes.restores; ++i) {
    std::unique_ptr<OpenedStore> opened;
    restore_ms.push_back(MicrosecondsOf([&] {
                           opened = std::make_unique<OpenedStore>(test::OpenStore(dir.path()));
                         }) /
                         1e3);
    QRM_CHECK(opened->state.container_count() == sizes.containers);
  }
  return Judge("restore of 10,000 containers", 100, Median(restore_ms), "ms");
}

int Main(const CommandLine& options) {
  const Sizes sizes =
      options.smoke ? Sizes{.containers = 100, .commits = 3, .restores = 1} : Sizes();
  const bool commits = JudgeCommits(sizes);
  return options.StatusOf(JudgeRestore(sizes) && commits);
}

}  // namespace
}  // namespace qrm::bench

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::bench::Main(qrm::bench::ReadCommandLine(argc, argv));
}
