// What the memory plugin is told: reserved memory, and the roles that are bound to NUMA nodes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/base/status.h"
#include "plugins/placement/sharing.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::memory {

/// How a container is bound to NUMA nodes.
struct BindingRule {
  placement::NumaSpan numa = placement::NumaSpan::kOne;
  placement::ShareRule share;

  bool operator==(const BindingRule&) const = default;
};

struct MemoryPluginConfig {
  uint64_t reserved_bytes_per_node = 0;
  /// NUMA node -> bytes, in place of `reserved_bytes_per_node`.
  std::map<int, uint64_t> reserved_bytes;
  std::map<std::string, BindingRule> roles;
  /// Guaranteed containers are bound to as few nodes as needed, as under kubelet's static policy.
  bool bind_guaranteed = false;
};

/// Reads the keys of the memory plugin. Errors: kInvalidArgument with file, line, key, value and
/// what is allowed.
StatusOr<MemoryPluginConfig> ParseMemoryConfig(const config::Section& section);

}  // namespace qrm::memory
