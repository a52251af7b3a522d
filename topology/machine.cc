// Sorts and indexes what discovery found.
#include "topology/machine.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <limits>
#include <numeric>
#include <utility>

#include "api/base/check.h"

namespace qrm {
namespace {

constexpr uint64_t kLocalDistance = 10;
constexpr uint64_t kRemoteDistance = 20;

/// In the order of MemoryKind.
constexpr std::array<std::string_view, 6> kKindWords = {"dram", "hbm", "pmem",
                                                        "cxl",  "gpu", "cpu-less"};

int Look(const std::vector<int>& index, int id) {
  return id >= 0 && static_cast<std::size_t>(id) < index.size()
             ? index[static_cast<std::size_t>(id)]
             : -1;
}

/// `index[ids[i]] == i`, -1 elsewhere. `ids` ascend.
std::vector<int> IndexOf(const std::vector<int>& ids) {
  std::vector<int> index(ids.empty() ? 0 : static_cast<std::size_t>(ids.back()) + 1, -1);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    QRM_CHECK(ids[i] >= 0 && (i == 0 || ids[i - 1] < ids[i]));
    index[static_cast<std::size_t>(ids[i])] = static_cast<int>(i);
  }
  return index;
}

template <typename T>
std::vector<int> IdsOf(const std::vector<T>& things) {
  std::vector<int> ids;
  ids.reserve(things.size());
  for (const T& thing : things) {
    ids.push_back(thing.id);
  }
  return ids;
}

std::vector<CpuGroup> GroupsOf(const std::map<int, CpuSet>& cpus_by_id) {
  std::vector<CpuGroup> groups;
  groups.reserve(cpus_by_id.size());
  for (const auto& [id, cpus] : cpus_by_id) {
    groups.push_back({.id = id, .cpus = cpus});
  }
  return groups;
}

}  // namespace

std::string_view WordOf(MemoryKind kind) {
  return kKindWords.at(static_cast<std::size_t>(kind));
}

std::optional<MemoryKind> ParseMemoryKind(std::string_view word) {
  const auto* const found = std::ranges::find(kKindWords, word);
  return found == kKindWords.end()
             ? std::nullopt
             : std::optional(static_cast<MemoryKind>(found - kKindWords.begin()));
}

Machine::Machine(MachineParts parts) : parts_(std::move(parts)) {
  SortNodes();
  std::ranges::sort(parts_.cpus, [](const Cpu& a, const Cpu& b) { return a.id < b.id; });
  IndexNodes();
  IndexCpus();
  FindHomes();
}

CpuSet Machine::OfflineNow() const {
  std::string list;
  std::getline(std::ifstream(parts_.online), list);
  const StatusOr<CpuSet> online = CpuSet::Parse(list);
  return online.ok() && !online->Empty() ? cpu_set_ - *online : CpuSet();
}

void Machine::SortNodes() {
  const std::vector<NumaNode> nodes = std::move(parts_.nodes);
  const std::vector<std::vector<uint64_t>> distances = std::move(parts_.distances);
  QRM_CHECK(distances.empty() || distances.size() == nodes.size());
  std::vector<std::size_t> order(nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order,
                    [&nodes](std::size_t a, std::size_t b) { return nodes[a].id < nodes[b].id; });

  parts_.nodes.clear();
  parts_.distances.assign(distances.size(), {});
  for (std::size_t i = 0; i < order.size(); ++i) {
    parts_.nodes.push_back(nodes[order[i]]);
    if (distances.empty()) {
      continue;
    }
    QRM_CHECK(distances[order[i]].size() == nodes.size());
    for (const std::size_t to : order) {
      parts_.distances[i].push_back(distances[order[i]][to]);
    }
  }
}

void Machine::IndexNodes() {
  const std::vector<int> ids = IdsOf(parts_.nodes);
  node_index_ = IndexOf(ids);
  for (const int id : ids) {
    node_mask_.Add(id);
  }
}

void Machine::IndexCpus() {
  cpu_index_ = IndexOf(IdsOf(parts_.cpus));
  std::map<int, CpuSet> packages;
  std::map<int, CpuSet> cores;
  std::map<int, CpuSet> l3s;
  for (const Cpu& cpu : parts_.cpus) {
    const int node = Look(node_index_, cpu.node);
    QRM_CHECK(node >= 0);
    cpu_set_.Add(cpu.id);
    parts_.nodes[static_cast<std::size_t>(node)].cpus.Add(cpu.id);
    packages[cpu.package].Add(cpu.id);
    cores[cpu.core].Add(cpu.id);
    if (cpu.has_l3) {
      l3s[cpu.l3].Add(cpu.id);
    }
    highest_core_kind_ = std::max(highest_core_kind_, cpu.core_kind);
  }
  packages_ = GroupsOf(packages);
  for (const NumaNode& node : parts_.nodes) {
    packages[node.package];
  }
  package_count_ = static_cast<int>(packages.size());
  cores_ = GroupsOf(cores);
  l3s_ = GroupsOf(l3s);
  core_index_ = IndexOf(IdsOf(cores_));
}

const Cpu* Machine::FindCpu(int id) const {
  const int index = Look(cpu_index_, id);
  return index < 0 ? nullptr : &parts_.cpus[static_cast<std::size_t>(index)];
}

const NumaNode* Machine::FindNode(int id) const {
  const int index = Look(node_index_, id);
  return index < 0 ? nullptr : &parts_.nodes[static_cast<std::size_t>(index)];
}

CpuSet Machine::CpusOf(const NumaMask& nodes) const {
  CpuSet cpus;
  for (const int id : nodes) {
    if (const NumaNode* node = FindNode(id); node != nullptr) {
      cpus |= node->cpus;
    }
  }
  return cpus;
}

NumaMask Machine::NodesOf(const CpuSet& cpus) const {
  NumaMask nodes;
  for (const int id : cpus) {
    if (const Cpu* cpu = FindCpu(id); cpu != nullptr) {
      nodes.Add(cpu->node);
    }
  }
  return nodes;
}

CpuSet Machine::CoresOf(const CpuSet& cpus) const {
  CpuSet threads;
  for (const int id : cpus) {
    const Cpu* const cpu = FindCpu(id);
    if (cpu != nullptr && !threads.Has(id)) {
      threads |= cores_[static_cast<std::size_t>(Look(core_index_, cpu->core))].cpus;
    }
  }
  return threads;
}

CpuSet Machine::WholeCores(const CpuSet& cpus, const CpuSet& offline) const {
  CpuSet whole;
  for (const CpuGroup& core : cores_) {
    if ((core.cpus - offline).IsSubsetOf(cpus)) {
      whole |= core.cpus;
    }
  }
  return cpus & whole;
}

CpuSet Machine::FirstThreads(const CpuSet& cpus) const {
  CpuSet first;
  for (const CpuGroup& core : cores_) {
    if (const CpuSet threads = core.cpus & cpus; !threads.Empty()) {
      first.Add(threads.First());
    }
  }
  return first;
}

CpuSet Machine::PerformanceCpus() const {
  CpuSet fast;
  for (const Cpu& cpu : cpus()) {
    if (cpu.core_kind == highest_core_kind_) {
      fast.Add(cpu.id);
    }
  }
  return fast;
}

CpuSet Machine::PackagesOf(const NumaMask& nodes) const {
  const CpuSet within = CpusOf(nodes);
  CpuSet cpus;
  for (const CpuGroup& package : packages_) {
    if (package.cpus.Intersects(within)) {
      cpus |= package.cpus;
    }
  }
  return cpus;
}

uint64_t Machine::Distance(int from, int to) const {
  const int row = Look(node_index_, from);
  const int column = Look(node_index_, to);
  if (parts_.distances.empty() || row < 0 || column < 0) {
    return from == to ? kLocalDistance : kRemoteDistance;
  }
  return parts_.distances[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
}

void Machine::FindHomes() {
  for (NumaNode& node : parts_.nodes) {
    if (!node.cpus.Empty()) {
      node.homes = {node.id};
    } else if (node.homes.Empty()) {
      node.homes = NearestWithCpus(node);
    }
  }
}

/// Those at the least distance; of several, those of its own package where that has any.
NumaMask Machine::NearestWithCpus(const NumaNode& node) const {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  NumaMask nearest;
  NumaMask in_package;
  for (const NumaNode& other : parts_.nodes) {
    const uint64_t distance = Distance(node.id, other.id);
    if (other.cpus.Empty() || distance > least) {
      continue;
    }
    if (distance < least) {
      least = distance;
      nearest = {};
      in_package = {};
    }
    nearest.Add(other.id);
    if (other.package == node.package) {
      in_package.Add(other.id);
    }
  }
  return in_package.Empty() ? nearest : in_package;
}

uint64_t Machine::memory_bytes() const {
  if (parts_.memory_bytes > 0) {
    return parts_.memory_bytes;
  }
  return std::accumulate(
      parts_.nodes.begin(), parts_.nodes.end(), uint64_t{0},
      [](uint64_t sum, const NumaNode& node) { return sum + node.memory_bytes; });
}

template <typename Value>
Machine Machine::With(const std::map<int, Value>& by_node, Value NumaNode::* member) const {
  Machine changed = *this;
  for (const auto& [id, value] : by_node) {
    if (const int index = Look(node_index_, id); index >= 0) {
      changed.parts_.nodes[static_cast<std::size_t>(index)].*member = value;
    }
  }
  return changed;
}

Machine Machine::WithMemoryKinds(const std::map<int, MemoryKind>& kind_by_node) const {
  return With(kind_by_node, &NumaNode::memory_kind);
}

Machine Machine::WithNodeMemory(const std::map<int, uint64_t>& bytes_by_node) const {
  return With(bytes_by_node, &NumaNode::memory_bytes);
}

}  // namespace qrm
