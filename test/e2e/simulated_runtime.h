// A node without containers: kubelet's and the runtime's part of a pod's life, played over real NRI
// and CRI sockets.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/id_set.h"
#include "api/proto/runtime/v1/api.pb.h"
#include "test/e2e/kubelet.h"
#include "test/support/scripted_cri.h"
#include "test/support/scripted_runtime.h"

namespace qrm::test {

/// Reports pods to qrmd as containerd would, and keeps the values that qrmd sets for their
/// containers. A stopped sandbox and an ended container stay in CRI's lists until the pod is
/// removed, the sandbox in synchronizations too. All this happens also while no client is attached.
///
/// A pod is named by its name: the latest one of several. Pods can also be made over CRI, without
/// limits of CPUs.
///
/// Threads: any; one for each pod.
class SimulatedRuntime {
 public:
  /// The two sockets are made in `directory`. Disconnects qrmd if it has not answered within
  /// `patience`, by default containerd's timeout.
  explicit SimulatedRuntime(const std::string& directory,
                            std::chrono::milliseconds patience = std::chrono::seconds(2));

  const std::string& nri_socket() const { return nri_socket_; }
  const std::string& cri_socket() const { return cri_socket_; }

  /// Sandbox, container, start. Errors: qrmd's rejection; the pod is removed again.
  Status RunPod(const PodSpec& spec);
  /// The pod runs without an event for qrmd, as while qrmd is not running.
  void RunPodUnseen(const PodSpec& spec);
  /// The same, but the pod's container has not started yet.
  void CreatePodUnseen(const PodSpec& spec);
  /// Starts that container without an event.
  Status StartUnseen(const std::string& pod_name);
  /// Starts one more container in a pod that runs, or a new one instead of the container of that
  /// name, which has ended. Errors: qrmd's rejection.
  Status AddContainer(const std::string& pod_name, const ContainerSpec& container);
  /// The same without an event for qrmd, as while qrmd is not running.
  Status AddContainerUnseen(const std::string& pod_name, const ContainerSpec& container);
  /// Kubelet resizes the pod's latest container of that name in place. Errors: qrmd's rejection.
  Status Resize(const std::string& pod_name, const ContainerSpec& container);
  /// The same without an event for qrmd, as while qrmd is not running.
  Status ResizeUnseen(const std::string& pod_name, const ContainerSpec& container);
  /// The container runs to its end; the pod lives on.
  Status EndContainer(const std::string& pod_name, const std::string& container);
  /// The pod's containers end for good, as in a job; its stopped sandbox stays.
  Status FinishPod(const std::string& name);
  Status RemovePod(const std::string& name);
  /// The runtime reports a sandbox for `spec`, which another plugin then rejects: no further event
  /// follows.
  Status RefuseSandbox(const PodSpec& spec);
  /// The begin and the end of qrmd's answer to the latest CreateContainer of the pod.
  std::pair<std::chrono::steady_clock::time_point, std::chrono::steady_clock::time_point>
  CreationOf(const std::string& pod_name) const;
  /// How long qrmd took to answer the latest CreateContainer of all pods.
  std::chrono::nanoseconds last_creation() const { return last_creation_; }
  /// As ScriptedRuntime's.
  int synchronizations() const { return nri_.synchronizations(); }
  bool WaitForSynchronizations(int count) { return nri_.WaitForSynchronizations(count); }
  /// Disconnects qrmd, as a runtime does that has waited too long.
  void Disconnect() { nri_.Disconnect(); }
  /// The runtime restarts: it sends no more events about older sandboxes that stop or are removed.
  /// Source: containerd's restored NRI state, which knows containers only.
  void Restart();

  /// Takes `cpus` offline and all others online, as a kernel with cgroup v1 does: they leave the
  /// cpusets of containers, do not return to them by themselves, and none can be set that has one.
  void SetOffline(const CpuSet& cpus);

  /// The present values of the pod's first container, in the proposal's form: {"envs": ...,
  /// "annotations": ..., "linux_container_resources": {"cpusetCpus": ...}, "rdt_class": ...},
  /// without empty ones.
  nlohmann::ordered_json RunOptions(const std::string& pod_name) const;
  /// qrmd's unsolicited calls over NRI: none, since old runtimes deadlock.
  std::vector<std::string> unsolicited() const { return nri_.unsolicited(); }
  /// UpdateContainerResources calls so far.
  std::size_t updates() const { return cri_.update_count(); }
  /// The values of updates of the pod's latest container of that name.
  ::runtime::v1::LinuxContainerResources Updated(const std::string& pod_name,
                                                 const std::string& container) const;
  /// CRI is another runtime's from now on.
  void SetCriRuntime(const std::string& name, const std::string& version) {
    cri_.SetRuntime(name, version);
  }
  /// CRI calls are carried out at once, and answered so much later from now on.
  void DelayAnswers(std::chrono::milliseconds delay) { cri_.SetDelay(delay); }
  /// ListContainers calls so far.
  int lists() const { return cri_.lists(); }

 private:
  struct Entry {
    uint32_t attempt = 0;
    nri::Container container;
    std::string serialized;  ///< the container, once it was reported
    nri::ContainerAdjustment adjustment;
    std::chrono::steady_clock::time_point asked;  ///< to create it
    std::chrono::steady_clock::time_point answered;
  };
  /// CPUs went offline.
  struct Offline {
    std::size_t updates = 0;  ///< that came before
    CpuSet cpus;
  };
  struct Sandbox {
    PodSpec spec;
    nri::PodSandbox pod;
    std::string serialized;  ///< the pod, once it was reported
    bool ready = true;
    bool restored = false;       ///< older than the runtime's latest start
    std::vector<Entry> entries;  ///< its containers, also those that have ended, by age
  };

  /// The requests over CRI.
  StatusOr<std::string> RunSandbox(const ::runtime::v1::PodSandboxConfig& config);
  StatusOr<std::string> MakeContainer(const std::string& sandbox_id,
                                      const ::runtime::v1::ContainerConfig& config);
  StatusOr<Sandbox> FindById(const std::string& sandbox_id) const;

  static Entry MakeEntry(const PodSpec& spec, uint32_t attempt);
  /// One more container of the pod's sandbox.
  static Entry NextEntry(const Sandbox& sandbox, const ContainerSpec& container);
  Status CreateAndStart(const std::string& uid, const nri::PodSandbox& pod, Entry entry);
  void Keep(const Sandbox& sandbox);
  void KeepEntry(const std::string& uid, const Entry& entry);
  void Forget(const Sandbox& sandbox);
  /// Of the pod's latest sandbox. Errors: kNotFound.
  StatusOr<Sandbox> Find(const std::string& pod_name) const;
  Status Stop(const Sandbox& sandbox);
  Status EndEntry(const Sandbox& sandbox, Entry entry);
  Status Tell(nri::Event event, const nri::PodSandbox& pod, const nri::Container& container = {});
  /// The cpusets that the container has now, by its adjustment and the updates since.
  nri::LinuxCPU CpusetsOf(const Entry& entry) const;
  std::vector<Offline> OfflineSoFar() const;
  ScriptedRuntime::Inventory TakeInventory();
  Status CheckOnline(const std::string& cpus) const;

  const std::string nri_socket_;
  const std::string cri_socket_;
  const std::chrono::milliseconds patience_;
  mutable Mutex mutex_;
  mutable Mutex offline_mutex_;
  std::vector<Offline> offline_ QRM_GUARDED_BY(offline_mutex_);      // by age; the last one is now
  std::map<std::string, Sandbox> sandboxes_ QRM_GUARDED_BY(mutex_);  // by the pod's UID
  StringMap uid_by_name_ QRM_GUARDED_BY(mutex_);
  std::atomic<std::chrono::nanoseconds> last_creation_;
  ScriptedCri cri_;
  ScriptedRuntime nri_;  // last, for its threads ask the others
};

}  // namespace qrm::test
