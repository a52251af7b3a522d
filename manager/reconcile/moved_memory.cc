// Compares the NUMA nodes of a container's memory with the container's allocation.
#include "manager/reconcile/moved_memory.h"

#include <optional>
#include <utility>

#include <fmt/core.h>

#include "api/base/log.h"

namespace qrm::manager {
namespace {

/// The kernel's counters of a cgroup lack what each CPU has counted but not flushed yet.
constexpr uint64_t kInexact = 1 << 20;

/// The part of `bytes` on nodes outside `nodes`.
std::map<int, uint64_t> Elsewhere(std::map<int, uint64_t> bytes, const NumaMask& nodes) {
  std::erase_if(bytes, [&nodes](const auto& of_node) {
    return nodes.Has(of_node.first) || of_node.second <= kInexact;
  });
  return bytes;
}

std::string StillThere(const ContainerKey& key, const std::map<int, uint64_t>& elsewhere,
                       const NumaMask& nodes) {
  NumaMask others;
  uint64_t bytes = 0;
  for (const auto& [node, count] : elsewhere) {
    others.Add(node);
    bytes += count;
  }
  return fmt::format(
      "{} bytes of container {} of pod {} are still on NUMA nodes {} instead of {}: the kernel did "
      "not move them (cgroup v1 moves memory only if cpuset.memory_migrate is 1); restart the "
      "container, or wait until it frees them",
      bytes, key.container, key.pod_uid, ToString(others), ToString(nodes));
}

}  // namespace

MovedMemory::MovedMemory(MemorySource read, const LiveContainers& live)
    : read_(std::move(read)), live_(live) {}

void MovedMemory::Note(const PlannedUpdate& update) {
  const auto mems = update.properties.find(std::string(kCpusetMems));
  if (read_ == nullptr || mems == update.properties.end()) {
    return;
  }
  if (const StatusOr<NumaMask> nodes = NumaMask::Parse(mems->second); nodes.ok()) {
    moved_[update.key] = {.id = update.container_id, .nodes = *nodes};
  }
}

std::vector<std::string> MovedMemory::Look() {
  std::map<ContainerKey, Moved> waiting;
  std::vector<std::string> problems;
  for (auto& [key, moved] : moved_) {
    const std::optional<LiveContainer> container = live_.Find(key);
    if (!container.has_value() || container->id != moved.id || container->cgroups_path.empty()) {
      continue;
    }
    StatusOr<std::map<int, uint64_t>> bytes = read_(container->cgroups_path);
    if (!bytes.ok()) {
      continue;
    }
    if (const auto elsewhere = Elsewhere(*std::move(bytes), moved.nodes); !elsewhere.empty()) {
      problems.push_back(StillThere(key, elsewhere, moved.nodes));
      if (++moved.looks < kMostLooks) {
        waiting.emplace(key, std::move(moved));
      }
      continue;
    }
    log::Info(
        "memory moved to the container's NUMA nodes",
        {{"pod", key.pod_uid}, {"container", key.container}, {"nodes", ToString(moved.nodes)}});
  }
  moved_ = std::move(waiting);
  return problems;
}

}  // namespace qrm::manager
