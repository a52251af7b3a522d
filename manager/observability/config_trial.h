// The changes that another configuration would make on this node.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "api/resource.h"

namespace qrm::manager {

/// A key whose value differs between two configurations.
struct ChangedKey {
  std::string key;
  std::string from;
  std::string to;
  bool at_next_start = false;  ///< the new value takes effect only at the next start
};

/// A pool whose CPUs would change; CPUs in the kernel's list form.
struct ChangedPool {
  std::string resource;
  std::string pool;
  std::string from;
  std::string to;
};

/// A container that would have another value of a plugin's knob.
struct Move {
  ContainerKey key;
  std::string pod_namespace;
  std::string pod_name;
  std::string resource;
  std::string from;
  std::string to;
};

/// The largest configuration that is accepted; no real configuration is as large.
inline constexpr std::size_t kMostConfigBytes = 256 << 10;

struct ConfigTrial {
  std::vector<ChangedKey> keys;
  std::vector<ChangedPool> pools;
  std::vector<Move> moves;
};

/// The configuration of a built-in plugin.
struct PluginPolicy {
  std::string plugin;
  std::string keys;   ///< its section on one line, as YAML
  std::string place;  ///< "FILE:LINE"; empty without a section
};

}  // namespace qrm::manager
