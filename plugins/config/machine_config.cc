// Reads and builds the machine that a plugin's configuration describes.
#include "plugins/config/machine_config.h"

#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/number.h"
#include "api/base/section.h"
#include "topology/discovery.h"

namespace qrm::config {
namespace {

constexpr char kMemoryKindsKey[] = "memory-kinds";

StatusOr<std::string> ReadSource(const Section& section, const std::string& fallback) {
  QRM_ASSIGN_OR_RETURN(std::string source, section.Text("machine", fallback));
  if (!MachineSource::Parse(source).ok()) {
    return section.Error(
        "machine", fmt::format("is '{}', which is not a machine", source),
        "write live, synthetic:DESCRIPTION, xml:FILE, fsroot:DIR or described:TEXT");
  }
  return source;
}

std::string BytesByNodeText(const std::map<int, uint64_t>& bytes_by_node) {
  std::vector<std::string> entries;
  entries.reserve(bytes_by_node.size());
  for (const auto& [node, bytes] : bytes_by_node) {
    entries.push_back(fmt::format("{}: {}", node, bytes));
  }
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

/// The node whose number is `name`, a key of `nodes`.
StatusOr<int> ReadNode(const Section& nodes, const std::string& name, const char* remedy) {
  const int node = ParseNumber<int>(name).value_or(-1);
  if (node < 0 || node >= NumaMask::kMaxIds) {
    return nodes.Error(name, "is not a NUMA node", remedy);
  }
  return node;
}

StatusOr<std::map<int, MemoryKind>> ParseMemoryKinds(const Section& section, std::string_view key) {
  std::map<int, MemoryKind> kinds;
  QRM_ASSIGN_OR_RETURN(const Section nodes, section.Child(key));
  for (const std::string& name : nodes.Keys()) {
    QRM_ASSIGN_OR_RETURN(const int node, ReadNode(nodes, name, "write lines such as `4: hbm`"));
    QRM_ASSIGN_OR_RETURN(const std::string word, nodes.Text(name, ""));
    QRM_ASSIGN_OR_RETURN(kinds[node], ReadMemoryKind(nodes, name, word));
  }
  return kinds;
}

std::string MemoryKindsText(const std::map<int, MemoryKind>& kinds) {
  std::vector<std::string> entries;
  entries.reserve(kinds.size());
  for (const auto& [node, kind] : kinds) {
    entries.push_back(fmt::format("{}: {}", node, WordOf(kind)));
  }
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

}  // namespace

Section WithoutMachineKeys(const Section& section) {
  return section.Without({"machine", "numa-memory", kMemoryKindsKey});
}

StatusOr<MemoryKind> ReadMemoryKind(const Section& section, std::string_view key,
                                    std::string_view word) {
  const std::optional<MemoryKind> kind = ParseMemoryKind(word);
  return kind.has_value()
             ? StatusOr<MemoryKind>(*kind)
             : section.Error(key, fmt::format("has '{}', which is not a kind of memory", word),
                             "write dram, hbm, pmem, cxl, gpu or cpu-less");
}

StatusOr<std::map<int, uint64_t>> ParseBytesByNode(const Section& section, std::string_view key) {
  std::map<int, uint64_t> bytes_by_node;
  QRM_ASSIGN_OR_RETURN(const Section nodes, section.Child(key));
  for (const std::string& name : nodes.Keys()) {
    QRM_ASSIGN_OR_RETURN(const int node, ReadNode(nodes, name, "write lines such as `0: 64Gi`"));
    QRM_ASSIGN_OR_RETURN(bytes_by_node[node], nodes.Bytes(name, 0));
  }
  return bytes_by_node;
}

StatusOr<MachineConfig> ParseMachineConfig(const Section& section) {
  MachineConfig config;
  QRM_ASSIGN_OR_RETURN(config.memory_kinds, ParseMemoryKinds(section, kMemoryKindsKey));
  QRM_ASSIGN_OR_RETURN(config.source, ReadSource(section, config.source));
  QRM_ASSIGN_OR_RETURN(config.node_memory, ParseBytesByNode(section, "numa-memory"));
  return config;
}

std::vector<ConfigKey> MachineKeys(MachineConfig& config) {
  ConfigKey machine = TextKey("machine", config.source,
                              "live, synthetic:DESCRIPTION, xml:FILE, fsroot:DIR, described:TEXT",
                              "Where the machine's CPUs and NUMA nodes are read from. qrmd takes "
                              "another one than live only with its flag --simulate.");
  machine.read = [&config](const Section& section, const std::string& /*key*/) -> Status {
    QRM_ASSIGN_OR_RETURN(config.source, ReadSource(section, config.source));
    return OkStatus();
  };
  return {std::move(machine),
          {.name = "numa-memory",
           .shape = KeyShape::kMapping,
           .range = "NUMA node: size",
           .help = "Memory of single NUMA nodes in place of what `machine` says.",
           .read = [&config](const Section& section, const std::string& key) -> Status {
             QRM_ASSIGN_OR_RETURN(config.node_memory, ParseBytesByNode(section, key));
             return OkStatus();
           },
           .show = [&config] { return BytesByNodeText(config.node_memory); }},
          {.name = kMemoryKindsKey,
           .shape = KeyShape::kMapping,
           .range = "NUMA node: dram, hbm, pmem, cxl, gpu or cpu-less",
           .help = "Kinds of memory of single NUMA nodes in place of what `machine` says.",
           .read = [&config](const Section& section, const std::string& key) -> Status {
             QRM_ASSIGN_OR_RETURN(config.memory_kinds, ParseMemoryKinds(section, key));
             return OkStatus();
           },
           .show = [&config] { return MemoryKindsText(config.memory_kinds); }}};
}

StatusOr<Machine> LoadMachine(const MachineConfig& config) {
  QRM_ASSIGN_OR_RETURN(MachineSource source, MachineSource::Parse(config.source));
  source.outside_cpuset = MachineSource::OutsideCpuset::kKeep;
  QRM_ASSIGN_OR_RETURN(Machine machine, Discover(source));
  for (const auto& [node, bytes] : config.node_memory) {
    if (machine.FindNode(node) == nullptr) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot give NUMA node {} {} bytes: machine {} has nodes {}; correct "
                    "numa-memory",
                    node, bytes, Quoted(config.source), ToString(machine.node_mask()));
    }
  }
  for (const auto& [node, kind] : config.memory_kinds) {
    if (machine.FindNode(node) == nullptr) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot treat the memory of NUMA node {} as {}: machine {} has nodes {}; "
                    "correct memory-kinds",
                    node, WordOf(kind), Quoted(config.source), ToString(machine.node_mask()));
    }
  }
  return machine.WithNodeMemory(config.node_memory).WithMemoryKinds(config.memory_kinds);
}

}  // namespace qrm::config
