// What a node's daemon places by: the machine, the topology policy and the plugins' configuration.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/cpu/config/config.h"
#include "plugins/cpu/state.h"
#include "plugins/memory/config.h"
#include "plugins/nic/config.h"
#include "plugins/nic/state.h"
#include "plugins/placement/admission_options.h"
#include "plugins/placement/pod_keys.h"
#include "topology/cpu_layout.h"
#include "topology/machine.h"
#include "topology/static_cpu_policy.h"

namespace qrm::placement {

/// A node as qrmd sees its own. It does not move: the policy refers to the machine.
///
/// Threads: immutable, any.
struct NodeModel {
  NodeModel() = default;
  ~NodeModel() = default;
  NodeModel(const NodeModel&) = delete;
  NodeModel& operator=(const NodeModel&) = delete;

  Machine machine;
  std::optional<CpuLayout> layout;  ///< of the machine
  CpuSet offline;                   ///< CPUs of the machine that are not there now
  AdmissionOptions options;         ///< the keys of NodeKeys
  PodKeys pod_keys;
  /// The plugins that run inside qrmd; what others decide is not known.
  std::vector<std::string> plugins = {"cpu", "memory", "nic"};
  cpu::CpuPluginConfig cpu;      ///< cut down to the machine
  cpu::PoolMap pools;            ///< as they are sized now
  bool rules_name_pods = false;  ///< so that pods that differ in their names only may differ
  std::set<std::string> pod_annotations;  ///< keys that the configuration names
  std::optional<StaticCpuPolicy> static_cpu;
  memory::MemoryPluginConfig memory;
  nic::NicPluginConfig nic;
  std::vector<nic::NicInfo> nics;
};

using NodeModelPtr = std::shared_ptr<const NodeModel>;

/// The keys of qrmd's configuration file that decide about allocations beside the plugins' own.
std::vector<config::ConfigKey> NodeKeys(AdmissionOptions& options, PodKeys& pod_keys);

/// The model of a node whose configuration is `text`: `NodeKeys` and the keys of the built-in
/// plugins, with qrmd's defaults; `machine` is synthetic:DESCRIPTION, or described: and a
/// machine's text. Beside them `offline-cpus`, and by their names in `pool-cpus` the pools that
/// were resized. `name` stands for the text in errors. Errors: kInvalidArgument with line and key.
StatusOr<NodeModelPtr> ReadNodeModel(const std::string& text, const std::string& name);

}  // namespace qrm::placement
