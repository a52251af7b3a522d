// What a node's daemon places by: the machine, the topology policy and the plugins' configuration.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/cpu/config.h"
#include "plugins/memory/config.h"
#include "plugins/nic/config.h"
#include "plugins/nic/state.h"
#include "topology/cpu_layout.h"
#include "topology/machine.h"
#include "topology/merge.h"
#include "topology/static_cpu_policy.h"

namespace qrm::scheduler {

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
  MergeOptions merge;
  TopologyScope scope = TopologyScope::kContainer;
  std::vector<std::string> skipped_namespaces = {"kube-system"};
  cpu::CpuPluginConfig cpu;  ///< cut down to the machine
  std::optional<StaticCpuPolicy> static_cpu;
  memory::MemoryPluginConfig memory;
  nic::NicPluginConfig nic;
  std::vector<nic::NicInfo> nics;
};

using NodeModelPtr = std::shared_ptr<const NodeModel>;

/// The model of a node whose configuration is `text`: the keys `machine` (synthetic:... only),
/// `numa-memory`, `topology-policy`, `topology-scope`, `prefer-closest-numa-nodes`,
/// `numeric-align-resources`, `skip-namespaces` and `plugins` of qrmd's configuration file, with
/// its defaults. `name` stands for the text in errors. Errors: kInvalidArgument with line and key.
StatusOr<NodeModelPtr> ReadNodeModel(const std::string& text, const std::string& name);

}  // namespace qrm::scheduler
