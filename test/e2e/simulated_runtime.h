// A node without containers: kubelet's and the runtime's part of a pod's life, played over real NRI
// and CRI sockets.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "test/e2e/kubelet.h"
#include "test/support/scripted_cri.h"
#include "test/support/scripted_runtime.h"

namespace qrm::test {

/// Tells qrmd of pods as containerd would, and keeps what qrmd makes of their containers.
///
/// Threads: any; one for each pod.
class SimulatedRuntime {
 public:
  /// The two sockets are made in `directory`.
  explicit SimulatedRuntime(const std::string& directory);

  const std::string& nri_socket() const { return nri_socket_; }
  const std::string& cri_socket() const { return cri_socket_; }

  /// Sandbox, container, start. Errors: qrmd's refusal.
  Status RunPod(const PodSpec& spec);
  /// The pod runs without qrmd hearing of it, as while that is away.
  void RunPodUnseen(const PodSpec& spec);
  /// Starts one more container in a pod that runs. Errors: qrmd's refusal.
  Status AddContainer(const std::string& pod_name, const ContainerSpec& container);
  Status RemovePod(const std::string& name);
  /// The pod's containers end for good, as those of a job; its stopped sandbox stays.
  Status FinishPod(const std::string& name);
  /// How long qrmd took to answer the latest CreateContainer.
  std::chrono::nanoseconds last_creation() const { return last_creation_; }
  /// Disconnects qrmd, as a runtime does when it restarts or has waited too long.
  void Disconnect() { nri_.Disconnect(); }

  /// What the pod's first container runs with now, as the proposal writes it: {"envs": ...,
  /// "annotations": ..., "linux_container_resources": {"cpusetCpus": ...}}, without what is empty.
  nlohmann::ordered_json RunOptions(const std::string& pod_name) const;
  /// What qrmd called over NRI of its own accord: nothing, or old runtimes deadlock.
  std::vector<std::string> unsolicited() const { return nri_.unsolicited(); }
  /// UpdateContainerResources calls so far.
  std::size_t updates() const { return cri_.updates().size(); }

 private:
  struct Entry {
    PodSpec spec;  ///< of the pod, with this container
    nri::PodSandbox pod;
    nri::Container container;
    nri::ContainerAdjustment adjustment;
  };

  Status CreateAndStart(Entry& entry);
  Status Stop(const std::vector<Entry>& entries);
  void Keep(Entry entry);
  /// The pod's containers, the first one first. Errors: kNotFound.
  StatusOr<std::vector<Entry>> TakeOut(const std::string& pod_name);
  /// The cpusets that the container has now, by its adjustment and the updates since.
  nri::LinuxCPU CpusetsOf(const Entry& entry) const;
  ScriptedRuntime::Inventory TakeInventory() const;

  const std::string nri_socket_;
  const std::string cri_socket_;
  mutable Mutex mutex_;
  /// By pod: its containers, the first one first.
  std::map<std::string, std::vector<Entry>> entries_ QRM_GUARDED_BY(mutex_);
  std::atomic<std::chrono::nanoseconds> last_creation_;
  ScriptedCri cri_;
  ScriptedRuntime nri_;  // last, for its threads ask the others
};

}  // namespace qrm::test
