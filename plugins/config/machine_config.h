// The keys that describe the machine a plugin places on, for plugins that run as separate
// processes.
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
  /// NUMA node -> bytes; for synthetic machines, whose nodes are all alike.
  std::map<int, uint64_t> node_memory;
  std::map<int, MemoryKind> memory_kinds;  ///< of NUMA nodes of which the machine does not tell it
};

/// These keys, with their places in `config`.
std::vector<ConfigKey> MachineKeys(MachineConfig& config);

/// Reads these keys of `section`; other keys are left to the caller. Errors: kInvalidArgument
/// with file and line.
StatusOr<MachineConfig> ParseMachineConfig(const Section& section);

/// A copy of `section` in which these keys are allowed: ParseMachineConfig reads them.
Section WithoutMachineKeys(const Section& section);

/// `word`, which stands at `key`, as a kind of memory. Errors: kInvalidArgument with file and line.
StatusOr<MemoryKind> ReadMemoryKind(const Section& section, std::string_view key,
                                    std::string_view word);

/// The mapping `key` from NUMA nodes to sizes, as in `0: 64Gi`. Errors: kInvalidArgument with file
/// and line.
StatusOr<std::map<int, uint64_t>> ParseBytesByNode(const Section& section, std::string_view key);

/// The machine so described, CPUs outside this process's own cpuset included: that may be a pool
/// which qrm manages itself. Errors: those of Discover; kInvalidArgument for a `node_memory` or
/// `memory_kinds` entry that names no node of it.
StatusOr<Machine> LoadMachine(const MachineConfig& config);

}  // namespace qrm::config
