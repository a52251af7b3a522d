// What others have to know of this node to place pods on it as qrmd does: its configuration and
// machine as one text.
#pragma once

#include <string>
#include <utility>

#include "api/base/status.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "manager/daemon/builtin_plugins.h"
#include "plugins/cpu/config/config.h"
#include "plugins/placement/admission_options.h"
#include "plugins/placement/pod_keys.h"
#include "topology/machine.h"

namespace qrm::manager {

/// Keys of the configuration file as far as they decide about places, with their values in force:
/// the machine is described in full, NICs are those that were found. Keys that hold what they hold
/// by default are left out.
///
/// Threads: immutable, any.
class NodeConfig {
 public:
  struct Parts {
    const Machine& machine;
    const BuiltinOptions& builtin;
    const placement::AdmissionOptions& admission;
    const placement::PodKeys& pod_keys;
  };
  /// Errors: kInvalidArgument when a plugin's section is wrong or does not fit the machine;
  /// kUnavailable when the NICs' addresses cannot be read.
  static StatusOr<NodeConfig> Make(const Parts& parts);

  /// One line of YAML. Pools have the sizes that `plugin_values` say, what the plugins keep beside
  /// their allocations; `offline` are the CPUs of the machine that are not there now.
  std::string Text(const StringMap& plugin_values, const CpuSet& offline) const;

 private:
  explicit NodeConfig(std::string keys) : keys_(std::move(keys)) {}

  std::string keys_;          // a mapping without its braces
  cpu::CpuPluginConfig cpu_;  // of the built-in plugin, as it fits the machine
};

}  // namespace qrm::manager
