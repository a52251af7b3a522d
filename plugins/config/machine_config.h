// The keys that describe the machine of a plugin, for plugins that run as separate processes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/status.h"
#include "topology/machine.h"

namespace qrm::config {

class Section;

/// `machine`, `numa-memory` and `memory-kinds` of a configuration file.
struct MachineConfig {
  std::string source = "live";  ///< as MachineSource::Parse reads it
  /// NUMA node -> bytes; for synthetic machines, whose nodes are all equal.
  std::map<int, uint64_t> node_memory;
  std::map<int, MemoryKind> memory_kinds;  ///< of NUMA nodes; replaces what the machine reports
};

/// These keys, with their members in `config`.
std::vector<ConfigKey> MachineKeys(MachineConfig& config);

/// Reads these keys of `section`, and ignores other keys. Errors: kInvalidArgument with file and
/// line.
StatusOr<MachineConfig> ParseMachineConfig(const Section& section);

/// A copy of `section` in which these keys are allowed: ParseMachineConfig reads them.
Section WithoutMachineKeys(const Section& section);

/// Parses `word`, from `key`, as a kind of memory. Errors: kInvalidArgument with file and line.
StatusOr<MemoryKind> ReadMemoryKind(const Section& section, std::string_view key,
                                    std::string_view word);

/// The node whose number is `name`, a key of `nodes`. Errors: kInvalidArgument with `remedy`.
StatusOr<int> ReadNode(const Section& nodes, const std::string& name, const char* remedy);

/// The mapping `key` from NUMA nodes to sizes, as in `0: 64Gi`. Errors: kInvalidArgument with file
/// and line.
StatusOr<std::map<int, uint64_t>> ParseBytesByNode(const Section& section, std::string_view key);

/// The described machine, including CPUs outside this process's cpuset: that may be a pool of qrm
/// itself. Errors: those of Discover; kInvalidArgument for an entry in `node_memory` or
/// `memory_kinds` whose node does not exist.
StatusOr<Machine> LoadMachine(const MachineConfig& config);

}  // namespace qrm::config
