// What the tests in the machine of scripts/vm.sh share: qrmd beside containerd, and what the kernel
// shows of containers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "api/base/status.h"
#include "api/id_set.h"
#include "manager/runtime/cgroup_cpusets.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"
#include "test/support/environment.h"

namespace qrm::test {

/// The first line of a file; empty when there is none.
std::string ReadLine(const std::string& file);
/// The CPUs of a NUMA node, those that are offline left out.
CpuSet CpusOfNode(int node);
/// The hardware threads of the core of `cpu`.
CpuSet ThreadsBeside(int cpu);
/// How many pages that belong to no file a process has on each NUMA node: those of files lie where
/// they were read first. Source: numa_maps in proc(5).
std::map<int, int64_t> AnonymousPages(uint32_t pid);

/// A test that is skipped where the machine is not that of scripts/vm.sh.
class MachineTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// Starts qrmd with `config` and plugins built in, such as "cpu,memory".
  void StartNode(const std::string& config, const std::string& plugins = "cpu,memory");
  /// A Guaranteed pod of one container.
  static PodSpec Guaranteed(const std::string& name, int cpus, int64_t mebibytes = 64);
  StatusOr<RunningPod> Run(const PodSpec& spec) { return kubelet_.RunPod(spec); }
  StatusOr<RunningPod> RunGuaranteed(const std::string& name, int cpus) {
    return Run(Guaranteed(name, cpus));
  }

  uint32_t PidOf(const RunningPod& pod);
  /// The settings of its cgroup. Empty sets for a container that is gone.
  manager::CgroupCpuset CpusetOf(const RunningPod& pod);
  /// Of these, the CPUs that the kernel lets its processes use now.
  CpuSet EffectiveCpusOf(const RunningPod& pod);
  /// Has the container write to 16 MiB of fresh memory, and waits until it has.
  bool Fill(const RunningPod& pod);
  /// True when all anonymous pages of the container lie on `nodes`, which has at least 16 MiB of
  /// them.
  testing::AssertionResult LiesOn(const RunningPod& pod, const NumaMask& nodes);

  const std::string work_dir_ = FromEnvironment("QRM_WORK_DIR");
  Kubelet kubelet_{{.socket = FromEnvironment("QRM_CRI_SOCKET"),
                    .image = FromEnvironment("QRM_IMAGE"),
                    .cgroup_parent = FromEnvironment("QRM_CGROUP_PARENT"),
                    .cgroup_driver = FromEnvironment("QRM_CGROUP_DRIVER") == "systemd"
                                         ? CgroupDriver::kSystemd
                                         : CgroupDriver::kCgroupfs,
                    .log_directory = work_dir_ + "/logs",
                    .timeout = std::chrono::seconds(120)}};
  /// The directory of qrmd's files; on the disk that is kept for tests over a restart of the
  /// machine.
  std::string node_dir_ = work_dir_ + "/node";
  /// Where qrmd and qrmctl are; by default, this program's directory.
  std::string bin_dir_;
  std::unique_ptr<Node> node_;

 private:
  manager::CgroupReader reader_;
};

}  // namespace qrm::test
