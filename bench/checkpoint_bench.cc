// The cost of durability: one container's commit on small and large nodes, beside the disk's own
// floor and beside a store that rewrites everything; and a node's restart.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <benchmark/benchmark.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "bench/bench_dir.h"
#include "bench/target.h"
#include "checkpoint/sqlite/durable_file.h"
#include "checkpoint/store.h"
#include "test/checkpoint/sample_state.h"

namespace qrm::checkpoint {
namespace {

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

  Change Next() { return PutContainers(next_++, 1); }
  void Commit(const Change& change) { QRM_CHECK(opened_.store->Commit(change).ok()); }

 private:
  const bench::BenchDir dir_;
  const OpenedStore opened_;
  std::size_t next_;
};

/// The durable commit of one container on a node that has `containers`.
void BM_Commit(benchmark::State& state) {
  GrowingStore store(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    const Change change = store.Next();
    state.ResumeTiming();
    store.Commit(change);
  }
}
BENCHMARK(BM_Commit)->ArgName("containers")->Arg(10)->Arg(1000)->Arg(10000)->UseRealTime();

/// The bytes of such a commit, by the growth of a new store's log.
std::size_t BytesPerCommit() {
  constexpr std::size_t kCommits = 20;
  const bench::BenchDir dir;
  const OpenedStore opened = test::OpenStore(dir.path());
  for (std::size_t i = 0; i < kCommits; ++i) {
    QRM_CHECK(opened.store->Commit(PutContainers(i, 1)).ok());
  }
  return std::filesystem::file_size(dir.path() + "/checkpoint.db-wal") / kCommits;
}

/// A file that grows by a commit's bytes, and one fdatasync each time.
class Appender {
 public:
  Appender() : fd_(::open((dir_ / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600)) {
    QRM_CHECK(fd_ >= 0);
  }
  ~Appender() { ::close(fd_); }
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  std::size_t bytes() const { return bytes_.size(); }
  void Append() {
    QRM_CHECK(::write(fd_, bytes_.data(), bytes_.size()) == static_cast<ssize_t>(bytes_.size()));
    QRM_CHECK(::fdatasync(fd_) == 0);
  }

 private:
  const bench::BenchDir dir_;
  const std::string bytes_ = std::string(BytesPerCommit(), 'x');
  const int fd_;
};

/// The floor of a commit.
void BM_AppendAndSync(benchmark::State& state) {
  Appender appender;
  state.counters["bytes"] = static_cast<double>(appender.bytes());
  for (auto _ : state) {
    appender.Append();
  }
}
BENCHMARK(BM_AppendAndSync)->UseRealTime();

/// The way of other products: the whole node as one JSON file, for each container.
void BM_RewriteEverything(benchmark::State& state) {
  const bench::BenchDir dir;
  const auto containers = static_cast<std::size_t>(state.range(0));
  nlohmann::json entries = nlohmann::json::array();
  const ContainerRecord record = test::SampleContainer("").record;
  const auto add = [&](std::size_t number) {
    for (const auto& [resource, allocation] : record.allocations) {
      const nlohmann::json info = {{"oci_property_name", allocation->oci_property},
                                   {"is_scalar_resource", true},
                                   {"allocated_quantity", allocation->quantity},
                                   {"allocation_result", allocation->value}};
      entries.push_back({{"PodUID", Uid(number)},
                         {"ContainerName", "main"},
                         {"ResourceName", resource},
                         {"AllocationInfo", info.dump()}});
    }
  };
  for (std::size_t i = 0; i < containers; ++i) {
    add(i);
  }
  for (auto _ : state) {
    const nlohmann::json file = {{"Data", {{"PodResourceEntries", entries}}}, {"Checksum", 0}};
    QRM_CHECK(WriteFileDurably(dir.path() + "/kubelet_qrm_checkpoint", file.dump()).ok());
  }
}
BENCHMARK(BM_RewriteEverything)
    ->ArgName("containers")
    ->Arg(10)
    ->Arg(1000)
    ->Arg(10000)
    ->UseRealTime();

/// A restart: open, check and read a node's state.
void BM_Restore(benchmark::State& state) {
  const bench::BenchDir dir;
  const auto containers = static_cast<std::size_t>(state.range(0));
  QRM_CHECK(test::OpenStore(dir.path()).store->Commit(PutContainers(0, containers)).ok());
  for (auto _ : state) {
    auto opened = std::make_unique<OpenedStore>(test::OpenStore(dir.path()));
    QRM_CHECK(opened->state.container_count() == containers);
    state.PauseTiming();
    opened.reset();
    state.ResumeTiming();
  }
}
BENCHMARK(BM_Restore)
    ->ArgName("containers")
    ->Arg(1000)
    ->Arg(10000)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

/// The next state to publish, in memory.
void BM_NextState(benchmark::State& state) {
  const auto containers = static_cast<std::size_t>(state.range(0));
  NodeState node = NodeState().With(PutContainers(0, containers));
  std::size_t next = containers;
  for (auto _ : state) {
    state.PauseTiming();
    Change change = PutContainers(next++, 1);
    state.ResumeTiming();
    benchmark::DoNotOptimize(node.With(std::move(change)));
  }
}
BENCHMARK(BM_NextState)->ArgName("containers")->Arg(10)->Arg(1000)->Arg(10000);

template <typename Work>
double MillisecondsOf(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// Takes turns, so that disturbances by the machine and its disk affect all three alike.
void JudgeCommits() {
  constexpr int kTurns = 200;
  GrowingStore small(10);
  GrowingStore large(10000);
  Appender appender;
  std::vector<double> small_ms;
  std::vector<double> large_ms;
  std::vector<double> append_ms;
  for (int i = 0; i < kTurns; ++i) {
    const Change to_small = small.Next();
    const Change to_large = large.Next();
    small_ms.push_back(MillisecondsOf([&] { small.Commit(to_small); }));
    large_ms.push_back(MillisecondsOf([&] { large.Commit(to_large); }));
    append_ms.push_back(MillisecondsOf([&] { appender.Append(); }));
  }
  const double commit = bench::Median(large_ms);
  bench::Judge("commit at 10,000 containers / at 10", 1.5, commit / bench::Median(small_ms), "x");
  bench::Judge("commit at 10,000 containers / append and fdatasync", 1.5,
               commit / bench::Median(append_ms), "x");
}

void JudgeRestore() {
  constexpr int kTurns = 11;
  const bench::BenchDir dir;
  QRM_CHECK(test::OpenStore(dir.path()).store->Commit(PutContainers(0, 10000)).ok());
  std::vector<double> restore_ms;
  for (int i = 0; i < kTurns; ++i) {
    std::unique_ptr<OpenedStore> opened;
    restore_ms.push_back(MillisecondsOf(
        [&] { opened = std::make_unique<OpenedStore>(test::OpenStore(dir.path())); }));
    QRM_CHECK(opened->state.container_count() == 10000);
  }
  bench::Judge("restore of 10,000 containers", 100, bench::Median(restore_ms), "ms");
}

}  // namespace
}  // namespace qrm::checkpoint

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return EXIT_FAILURE;
  }
  benchmark::RunSpecifiedBenchmarks();
  qrm::checkpoint::JudgeCommits();
  qrm::checkpoint::JudgeRestore();
  return EXIT_SUCCESS;
}
