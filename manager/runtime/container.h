// Pods and containers as a container runtime describes them, in no protocol's terms.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/resource.h"

namespace qrm::manager {

/// The cgroup values of a container. Absent and empty values are not set, or do not change:
/// runtimes cannot express an empty cpuset.
/// Source: CRI LinuxContainerResources and NRI LinuxResources.
struct LinuxResources {
  std::optional<uint64_t> cpu_shares;
  std::optional<int64_t> cpu_quota_us;  ///< per period; -1 lifts the limit
  std::optional<uint64_t> cpu_period_us;
  std::optional<int64_t> memory_limit_bytes;
  std::optional<int64_t> memory_swap_limit_bytes;        ///< memory and swap together
  std::string cpuset_cpus;                               ///< kernel list form
  std::string cpuset_mems;                               ///< kernel list form
  std::map<std::string, uint64_t> hugepage_limit_bytes;  ///< by page size, "2MB"
  StringMap unified;                                     ///< cgroup v2 file -> value

  bool operator==(const LinuxResources&) const = default;
};

/// The values behind a container's requests, as kubelet sent them to the runtime or the runtime
/// shows them. Absent values are not known.
struct ShownValues {
  std::optional<uint64_t> cpu_shares;
  std::optional<int64_t> cpu_quota_us;
  std::optional<uint64_t> cpu_period_us;
  std::optional<int64_t> memory_limit_bytes;
  /// Kubelet sent them while qrmd was connected. Else they come from a list: a runtime that has
  /// restarted may have read them from the file of the container's creation.
  bool by_event = false;

  bool operator==(const ShownValues&) const = default;
};

inline ShownValues ShownIn(const LinuxResources& resources, bool by_event) {
  return {resources.cpu_shares, resources.cpu_quota_us, resources.cpu_period_us,
          resources.memory_limit_bytes, by_event};
}

/// `resources` with the values of `shown` in place of its own.
inline LinuxResources WithShown(LinuxResources resources, const ShownValues& shown) {
  resources.cpu_shares = shown.cpu_shares;
  resources.cpu_quota_us = shown.cpu_quota_us;
  resources.cpu_period_us = shown.cpu_period_us;
  resources.memory_limit_bytes = shown.memory_limit_bytes;
  return resources;
}

/// One pod sandbox.
struct RuntimePod {
  SharedText id;   ///< the runtime's
  SharedText uid;  ///< Kubernetes'
  SharedText pod_namespace;
  SharedText name;
  StringMap labels;
  StringMap annotations;
  std::string runtime_handler;
  std::string cgroup_parent;
  /// The sum over the containers, which kubelet sent with the sandbox.
  LinuxResources resources;
  uint32_t pid = 0;
  bool ready = true;  ///< false: it has stopped; only CRI's lists show it

  bool operator==(const RuntimePod&) const = default;
};

enum class RuntimeContainerState : uint8_t { kUnknown, kCreated, kPaused, kRunning, kStopped };

/// One container.
struct RuntimeContainer {
  SharedText id;      ///< the runtime's
  SharedText pod_id;  ///< RuntimePod::id
  SharedText name;
  RuntimeContainerState state = RuntimeContainerState::kUnknown;
  uint32_t attempt = 0;  ///< how often kubelet has created it before in this pod
  StringMap labels;
  StringMap annotations;
  std::vector<std::string> env;          ///< "KEY=value"
  std::vector<std::string> mount_paths;  ///< paths in the container
  std::vector<std::string> device_paths;
  std::vector<std::string> cdi_devices;  ///< "vendor.com/class=name"; only newer runtimes say
  LinuxResources resources;
  std::optional<int64_t> oom_score_adj;
  std::string cgroups_path;
  uint32_t pid = 0;  ///< 0 until it has started

  bool operator==(const RuntimeContainer&) const = default;
};

/// True for a container whose first process has started and not ended.
inline bool Runs(const RuntimeContainer& container) {
  return container.state == RuntimeContainerState::kRunning ||
         container.state == RuntimeContainerState::kPaused;
}

/// True for a container that runs, or was created and will run.
inline bool IsLive(const RuntimeContainer& container) {
  return Runs(container) || container.state == RuntimeContainerState::kCreated;
}

/// All that CRI lists at once.
struct RuntimeList {
  std::vector<RuntimePod> pods;
  std::vector<RuntimeContainer> containers;
  /// When the list was requested: it may miss later changes.
  std::chrono::steady_clock::time_point asked_at = std::chrono::steady_clock::time_point::max();
};

/// Changes to a container that is being created.
struct ContainerAdjustment {
  LinuxResources resources;
  std::optional<int64_t> oom_score_adj;
  std::string rdt_class;  ///< a resctrl group that exists; empty: not set
  StringMap envs;
  StringMap annotations;
  std::vector<Mount> mounts;
  std::vector<DeviceSpec> devices;

  bool operator==(const ContainerAdjustment&) const = default;
};

/// New values for an existing container.
struct ContainerUpdate {
  std::string container_id;
  LinuxResources resources;

  bool operator==(const ContainerUpdate&) const = default;
};

/// The runtime's own name and version.
struct RuntimeInfo {
  std::string name;     ///< "containerd", "cri-o"
  std::string version;  ///< "v1.7.24"

  bool operator==(const RuntimeInfo&) const = default;
};

}  // namespace qrm::manager
