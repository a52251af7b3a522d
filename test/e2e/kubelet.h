// kubelet's side of CRI: makes pods as kubelet does, so that qrmd gets the calls of a real node.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/base/status.h"
#include "api/resource.h"
#include "tools/qrmctl/cgroup_values.h"

namespace qrm::test {

/// A container as its pod's manifest has it.
struct ContainerSpec {
  std::string name = "container0";
  int64_t milli_cpus = 0;    ///< request
  int64_t memory_bytes = 0;  ///< request and limit; 0 for none
  /// The limit is the request for CPUs too: with memory, a Guaranteed container.
  bool cpu_limit = false;
  int64_t milli_limit = 0;  ///< of CPUs, where it is not the request; 0 for none
  std::string cpus;         ///< the cpuset that kubelet's CPU manager sets; empty for none
  std::vector<std::string> cdi_devices;  ///< as containerd 2.3 shows them
};

/// A pod with one container.
struct PodSpec {
  std::string name;
  std::string uid;
  std::string pod_namespace = "default";
  StringMap labels;
  StringMap annotations;
  ContainerSpec container;
};

/// A pod that runs.
struct RunningPod {
  PodSpec spec;
  std::string sandbox_id;
  std::string container_id;
  std::string log_file;
  uint32_t sandboxes = 1;   ///< made for it so far
  uint32_t containers = 1;  ///< likewise
};

/// A container that the runtime lists as made or running.
struct ListedContainer {
  std::string id;
  std::string pod_uid;
  std::string name;
  bool running = false;
};

/// The cgroup values that kubelet computes for a container.
struct CgroupValues : manager::cli::CgroupValues {
  std::string qos_path;  ///< below kubepods: "", "/burstable" or "/besteffort"
};
CgroupValues ValuesFor(const ContainerSpec& container);

/// kubelet's labels of a container, which name its pod.
StringMap ContainerLabels(const PodSpec& pod);
/// The pod's own labels and those that kubelet adds.
StringMap SandboxLabels(const PodSpec& pod);

/// The driver of containers' cgroups: kubelet's and the runtime's must be the same.
enum class CgroupDriver { kCgroupfs, kSystemd };

/// Calls the runtime, and waits. Errors: the runtime's.
class Kubelet {
 public:
  struct Options {
    std::string socket;
    std::string image;
    std::string cgroup_parent;  ///< everything goes below it; with systemd, empty
    CgroupDriver cgroup_driver = CgroupDriver::kCgroupfs;
    std::string log_directory;
    std::chrono::seconds timeout{20};
    /// The runtime's time for a call, such as "create container main of pod web".
    std::function<void(const std::string& call, std::chrono::nanoseconds took)> on_call =
        [](const std::string&, std::chrono::nanoseconds) {};
  };

  explicit Kubelet(Options options);
  ~Kubelet();
  Kubelet(const Kubelet&) = delete;
  Kubelet& operator=(const Kubelet&) = delete;

  /// Sandbox, container, start. A pod whose container is rejected is removed again.
  StatusOr<RunningPod> RunPod(const PodSpec& spec);
  Status RemovePod(const RunningPod& pod);
  /// Makes and starts one more container in the pod; returns its id.
  StatusOr<std::string> AddContainer(const RunningPod& pod, const ContainerSpec& container,
                                     uint32_t attempt = 0);
  Status RemoveContainer(const std::string& container_id);
  /// A new container instead of the pod's present one, as kubelet restarts it; here the new one
  /// runs before the old one has ended.
  Status RestartContainer(RunningPod& pod);
  /// A new sandbox and container instead of the pod's present ones, which are removed only then.
  Status ReplaceSandbox(RunningPod& pod);
  /// Updates a container in place to `values`, and to `cpus` unless that is empty.
  Status Resize(const std::string& container_id, const CgroupValues& values,
                const std::string& cpus = "");
  StatusOr<std::vector<ListedContainer>> ListContainers();
  /// Removes every pod that the runtime has. Errors: the latest one.
  Status RemoveAllPods() { return RemovePodsBut({}); }
  /// Except pods of these UIDs.
  Status RemovePodsBut(const std::set<std::string>& uids);
  /// The runtime's verbose status of the container: "pid", "runtimeSpec" and more.
  StatusOr<nlohmann::json> Inspect(const std::string& container_id);
  /// The lines that the container has printed.
  StatusOr<std::vector<std::string>> ReadLog(const RunningPod& pod);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::test
