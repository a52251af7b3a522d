// The memory plugin's configuration: reserved memory, and the roles that are bound to NUMA nodes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/rules/select.h"
#include "plugins/rules/sharing.h"
#include "topology/machine.h"
#include "topology/node_memory.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::memory {

/// How a container is bound to NUMA nodes.
struct BindingRule {
  rules::NumaSpan numa = rules::NumaSpan::kOne;
  rules::ShareRule share;
  /// The kinds of memory that it may have, one at a time, in order of preference; empty: any.
  std::vector<MemoryKind> kinds;
  /// Whether it moves to other nodes if its nodes have no room when it grows in place.
  bool moves = false;

  bool operator==(const BindingRule&) const = default;
};

struct MemoryPluginConfig {
  uint64_t reserved_bytes_per_node = 0;
  /// NUMA node -> bytes by type; replaces `reserved_bytes_per_node`.
  std::map<int, MemoryBytes> reserved_bytes;
  std::vector<rules::RoleRule> rules;  ///< give containers another role
  std::map<std::string, BindingRule> roles;
  /// The part of its NUMA nodes that a container must request to get them exclusively by
  /// annotation.
  uint64_t exclusive_node_percent = rules::kUsualExclusiveNodePercent;
  /// Kubelet's static policy binds Guaranteed containers that nothing else binds.
  bool by_static_policy = false;
  bool binds_shared = false;  ///< pods of shared_cores that ask for it are bound to one node, too
};

/// Reads the keys of the memory plugin. Errors: kInvalidArgument with file, line, key, value and
/// the allowed values.
StatusOr<MemoryPluginConfig> ParseMemoryConfig(const config::Section& section);

}  // namespace qrm::memory
