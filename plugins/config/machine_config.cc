// Reads and builds the machine that a plugin's configuration describes.
#include "plugins/config/machine_config.h"

#include <functional>
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

template <typename Value, typename Text>
std::string ByNodeText(const std::map<int, Value>& by_node, const Text& text) {
  std::vector<std::string> entries;
  for (const auto& [node, value] : by_node) {
    entries.push_back(fmt::format("{}: {}", node, text(value)));
  }
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
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

/// OK if the machine has `node`, which `key` is to `change`.
Status CheckNode(const Machine& machine, const MachineConfig& config, int node, const char* key,
                 const std::string& change) {
  return machine.FindNode(node) != nullptr
             ? OkStatus()
             : Errorf(StatusCode::kInvalidArgument,
                      "cannot {}: machine {} has nodes {}; correct {}", change,
                      Quoted(config.source), ToString(machine.node_mask()), key);
}

}  // namespace

StatusOr<int> ReadNode(const Section& nodes, const std::string& name, const char* remedy) {
  const int node = ParseNumber<int>(name).value_or(-1);
  if (node < 0 || node >= NumaMask::kMaxIds) {
    return nodes.Error(name, "is not a NUMA node", remedy);
  }
  return node;
}

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
           .show = [&config] { return ByNodeText(config.node_memory, std::identity()); }},
          {.name = kMemoryKindsKey,
           .shape = KeyShape::kMapping,
           .range = "NUMA node: dram, hbm, pmem, cxl, gpu or cpu-less",
           .help = "Kinds of memory of single NUMA nodes in place of what `machine` says.",
           .read = [&config](const Section& section, const std::string& key) -> Status {
             QRM_ASSIGN_OR_RETURN(config.memory_kinds, ParseMemoryKinds(section, key));
             return OkStatus();
           },
           .show = [&config] { return ByNodeText(config.memory_kinds, WordOf); }}};
}

StatusOr<Machine> LoadMachine(const MachineConfig& config) {
  QRM_ASSIGN_OR_RETURN(MachineSource source, MachineSource::Parse(config.source));
  source.outside_cpuset = MachineSource::OutsideCpuset::kKeep;
  QRM_ASSIGN_OR_RETURN(Machine machine, Discover(source));
  for (const auto& [node, bytes] : config.node_memory) {
    QRM_RETURN_IF_ERROR(CheckNode(machine, config, node, "numa-memory",
                                  fmt::format("give NUMA node {} {} bytes", node, bytes)));
  }
  for (const auto& [node, kind] : config.memory_kinds) {
    QRM_RETURN_IF_ERROR(
        CheckNode(machine, config, node, "memory-kinds",
                  fmt::format("treat the memory of NUMA node {} as {}", node, WordOf(kind))));
  }
  return machine.WithNodeMemory(config.node_memory).WithMemoryKinds(config.memory_kinds);
}

}  // namespace qrm::config
