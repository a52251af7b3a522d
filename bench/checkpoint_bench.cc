// What durability costs: one container's commit on small and large nodes, beside the disk's own
// floor and beside a store that rewrites everything; and a node's restart.
#include <filesystem>
#include <memory>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <benchmark/benchmark.h>
#include <nlohmann/json.hpp>

#include "bench/bench_dir.h"
#include "checkpoint/durable_file.h"
#include "checkpoint/store.h"
#include "test/checkpoint/sample_state.h"

namespace qrm::checkpoint {
namespace {

/// UIDs come in no order, as the API server makes them.
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

/// The durable commit of one container on a node that has `containers`.
void BM_Commit(benchmark::State& state) {
  const bench::BenchDir dir;
  const auto containers = static_cast<std::size_t>(state.range(0));
  const OpenedStore opened = OpenSqliteStore(dir.path());
  QRM_CHECK(opened.store->Commit(PutContainers(0, containers)).ok());
  std::size_t next = containers;
  for (auto _ : state) {
    state.PauseTiming();
    const Change change = PutContainers(next++, 1);
    state.ResumeTiming();
    QRM_CHECK(opened.store->Commit(change).ok());
  }
}
BENCHMARK(BM_Commit)->ArgName("containers")->Arg(10)->Arg(1000)->Arg(10000)->UseRealTime();

/// What such a commit writes, read off the growth of a new store's log.
std::size_t BytesPerCommit() {
  constexpr std::size_t kCommits = 20;
  const bench::BenchDir dir;
  const OpenedStore opened = OpenSqliteStore(dir.path());
  for (std::size_t i = 0; i < kCommits; ++i) {
    QRM_CHECK(opened.store->Commit(PutContainers(i, 1)).ok());
  }
  return std::filesystem::file_size(dir.path() + "/checkpoint.db-wal") / kCommits;
}

/// The floor: the bytes of such a commit appended to a file, and one fdatasync.
void BM_AppendAndSync(benchmark::State& state) {
  const bench::BenchDir dir;
  const std::string bytes(BytesPerCommit(), 'x');
  state.counters["bytes"] = static_cast<double>(bytes.size());
  const int fd = ::open((dir.path() + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  for (auto _ : state) {
    QRM_CHECK(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    QRM_CHECK(::fdatasync(fd) == 0);
  }
  ::close(fd);
}
BENCHMARK(BM_AppendAndSync)->UseRealTime();

/// How the peers do it: the whole node as one JSON file, for each container.
void BM_RewriteEverything(benchmark::State& state) {
  const bench::BenchDir dir;
  const auto containers = static_cast<std::size_t>(state.range(0));
  nlohmann::json entries = nlohmann::json::array();
  const ContainerRecord record = test::SampleContainer("").record;
  const auto add = [&](std::size_t number) {
    for (const auto& [resource, allocation] : record.allocations) {
      const nlohmann::json info = {{"oci_property_name", allocation.oci_property},
                                   {"is_scalar_resource", true},
                                   {"allocated_quantity", allocation.quantity},
                                   {"allocation_result", allocation.value}};
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
  QRM_CHECK(OpenSqliteStore(dir.path()).store->Commit(PutContainers(0, containers)).ok());
  for (auto _ : state) {
    auto opened = std::make_unique<OpenedStore>(OpenSqliteStore(dir.path()));
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

}  // namespace
}  // namespace qrm::checkpoint
