// What a node has and lacks for qrmd, judged by its files alone: before qrmd is installed, too.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"

namespace qrm::manager::cli {

/// The verdict on one part of a node.
struct NodeCheck {
  enum class State { kOk, kDegraded, kFailing };

  std::string name;  ///< "kernel"
  State state = State::kOk;
  std::string found;
  std::string cure;  ///< one sentence; empty while it is kOk
};

/// "ok", "degraded", "failing".
std::string ToString(NodeCheck::State state);

/// What of qrmd's configuration the checks need. The defaults are those of qrmd.
struct NodePaths {
  std::string root;  ///< where the node's root directory is; empty: it is ours
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string nri_socket = "/var/run/nri/nri.sock";
  std::string cri_socket = "/run/containerd/containerd.sock";
  std::string kubelet_dir = "/var/lib/kubelet";
  std::string pods_socket = "/var/lib/kubelet/pods-api/pods-api.sock";
  std::string kubelet_url;
  bool uses_rdt = false;
  bool uses_blockio = false;
};

/// The paths that the configuration `file` names; the defaults if it does not exist.
/// Errors: kInvalidArgument for a file that is not YAML.
StatusOr<NodePaths> ReadNodePaths(const std::string& root, const std::string& file);

/// Kernel, cgroups, the runtime's sockets and settings, kubelet's policies and gates, irqbalance,
/// resctrl, class keys that the runtime reads, AppArmor, other writers of cpusets, other processes
/// of qrmd.
std::vector<NodeCheck> CheckNode(const NodePaths& node);

/// Whether the runtime of this name and version is new enough for NRI.
NodeCheck CheckRuntimeVersion(const std::string& name, const std::string& version);

}  // namespace qrm::manager::cli
