// kubelet's side of CRI: makes pods the way kubelet does, so that qrmd meets what it will meet on a
// node.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/resource.h"
#include "api/status.h"

namespace qrm::test {

/// A container as its pod's manifest has it.
struct ContainerSpec {
  std::string name = "container0";
  int64_t milli_cpus = 0;    ///< request
  int64_t memory_bytes = 0;  ///< request and limit; 0 for none
  /// The limit is the request for CPUs too: with memory, a Guaranteed container.
  bool cpu_limit = false;
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
};

/// The cgroup values that kubelet computes for a container.
/// Source: kubelet's MilliCPUToShares, MilliCPUToQuota and GetContainerOOMScoreAdjust.
struct CgroupValues {
  int64_t cpu_shares = 0;
  int64_t cpu_quota_us = 0;
  int64_t memory_limit_bytes = 0;
  int64_t oom_score_adj = 0;
  std::string qos_path;  ///< below kubepods: "", "/burstable" or "/besteffort"
};
CgroupValues ValuesFor(const ContainerSpec& container);

/// kubelet's labels of a container, which name its pod.
StringMap ContainerLabels(const PodSpec& pod);
/// The pod's own labels and those that kubelet adds.
StringMap SandboxLabels(const PodSpec& pod);

/// Calls the runtime, and waits. Errors: the runtime's.
class Kubelet {
 public:
  struct Options {
    std::string socket;
    std::string image;
    std::string cgroup_parent;  ///< everything goes below it
    std::string log_directory;
    std::chrono::seconds timeout{20};
  };

  explicit Kubelet(Options options);
  ~Kubelet();
  Kubelet(const Kubelet&) = delete;
  Kubelet& operator=(const Kubelet&) = delete;

  /// Sandbox, container, start. A pod whose container is refused is taken away again.
  StatusOr<RunningPod> RunPod(const PodSpec& spec);
  Status RemovePod(const RunningPod& pod);
  /// The runtime's verbose status of the container: "pid", "runtimeSpec" and more.
  StatusOr<nlohmann::json> Inspect(const std::string& container_id);
  /// The lines that the container has printed.
  StatusOr<std::vector<std::string>> ReadLog(const RunningPod& pod);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::test
