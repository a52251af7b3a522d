// The configuration and the machine as one text. Schedulers use it to place pods as this qrmd does.
#pragma once

#include <string>
#include <utility>

#include "api/base/status.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "manager/admission/admission_options.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/demand/pod_keys.h"
#include "plugins/cpu/config/config.h"
#include "topology/machine.h"

namespace qrm::manager {

/// The keys of the configuration that influence placement, with their values in force. The machine
/// is described in full, and NICs as they were found. Keys with default values are omitted.
///
/// Threads: immutable, any.
class NodeConfig {
 public:
  struct Parts {
    const Machine& machine;
    const BuiltinOptions& builtin;
    const AdmissionOptions& admission;
    const PodKeys& pod_keys;
  };
  /// Errors: kInvalidArgument when a plugin's section is wrong or does not fit the machine;
  /// kUnavailable when the NICs' addresses cannot be read.
  static StatusOr<NodeConfig> Make(const Parts& parts);

  /// One line of YAML. The sizes of pools are those in `plugin_values`, which plugins keep beside
  /// their allocations. `offline` are the CPUs that are offline now.
  std::string Text(const StringMap& plugin_values, const CpuSet& offline) const;

 private:
  explicit NodeConfig(std::string keys) : keys_(std::move(keys)) {}

  std::string keys_;          // a YAML mapping without its braces
  cpu::CpuPluginConfig cpu_;  // of the built-in plugin, fitted to the machine
};

}  // namespace qrm::manager
