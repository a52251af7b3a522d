// A container runtime without containers, which forgets nothing: stopped sandboxes stay in its
// lists, and after a restart it no longer tells of the sandboxes from before, as containerd does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "test/e2e/runtime_messages.h"
#include "test/model/pod_plan.h"
#include "test/support/scripted_runtime.h"

namespace qrm::test {

class ModelCri;

/// A container as the runtime has it.
struct Box {
  enum class State { kCreated, kRunning, kExited };

  std::string id;
  std::string sandbox_id;
  ContainerKey key;
  State state = State::kCreated;
  uint32_t attempt = 0;
  nri::Container message;
  std::string cpus;         ///< its cgroup has them; empty: nobody has set any
  std::string told;         ///< by its adjustment and the updates since; empty: never set
  std::string mems;         ///< likewise
  std::string nic_address;  ///< from its environment
  bool adjusted = false;    ///< qrmd answered its creation
};

struct Sandbox {
  std::string id;
  nri::PodSandbox message;
  bool ready = true;
  int era = 0;  ///< the runtime's, when it was made
};

/// What of a node's runtime qrmd can see and change, over real NRI and CRI sockets. Without qrmd
/// containers come and go all the same, as they do on a node.
///
/// Threads: one makes changes; qrmd's calls come on others.
class ModelRuntime {
 public:
  /// The two sockets are made in `directory`.
  explicit ModelRuntime(const std::string& directory);
  ~ModelRuntime();

  const std::string& nri_socket() const { return nri_socket_; }
  const std::string& cri_socket() const { return cri_socket_; }
  /// A directory that stands for the cgroups of containers.
  const std::string& cgroup_root() const { return cgroup_root_; }

  /// Returns the sandbox's id.
  std::string RunSandbox(const PodSpec& spec);
  /// Creates and starts a container; returns its id. Errors: qrmd's refusal, kDeadlineExceeded when
  /// it answers too late.
  StatusOr<std::string> RunContainer(const std::string& sandbox_id, const PodSpec& spec,
                                     uint32_t attempt);
  void StopContainer(const std::string& id);
  void RemoveContainer(const std::string& id);
  /// Its containers, too.
  void StopSandbox(const std::string& id);
  /// Stops it where it is not stopped.
  void RemoveSandbox(const std::string& id);
  /// False for those from before its latest restart, whose end it keeps to itself.
  bool TellsOf(const std::string& sandbox_id) const;
  /// Kubelet resizes the container in place to `spec`. Errors: qrmd's.
  Status Resize(const std::string& id, const ContainerSpec& spec);
  /// Writes what it was told of the container to its cgroup again, as systemd does at a reload.
  void WriteAgain(const std::string& id);
  /// The runtime restarts: its containers go on.
  void Restart();
  /// It serves no NRI from now on, and again.
  void CloseNri();
  void OpenNri();
  /// Its next `times` synchronizations leave these containers out.
  void LeaveOut(std::set<std::string> ids, int times);
  /// Whether qrmd has yet to learn of one of them: by a synchronization, or by a question over CRI.
  bool AnyUnheard() const;

  /// Connections of qrmd's so far that were told of everything.
  int synchronizations() const;
  /// Waits until there was one more than `before`.
  bool WaitForConnection(int before);

  std::vector<Box> Boxes() const;
  std::vector<Sandbox> Sandboxes() const;
  StatusOr<Box> FindBox(const std::string& id) const;
  /// As CRI's ContainerStatus. Threads: any.
  StatusOr<Box> ShowOverCri(const std::string& id);

  /// What becomes of updates from now on: they fail, or are applied and said to have failed.
  enum class Updates { kWork, kFail, kFailLate };
  void SetUpdates(Updates updates) { updates_ = updates; }
  /// As CRI's UpdateContainerResources. Threads: any.
  Status UpdateOverCri(const std::string& id, const cri::LinuxContainerResources& values);

 private:
  /// Asks qrmd as containerd does, and applies.
  Status Update(const std::string& id, const cri::LinuxContainerResources& values);
  Status Tell(nri::Event event, const std::string& sandbox_id, const Box& box = {});
  Status TellOf(nri::Event event, const nri::PodSandbox& pod, const nri::Container& container);
  StatusOr<nri::CreateContainerResponse> Create(const nri::CreateContainerRequest& request);
  /// As its namesake of the NRI socket, with `hook_` locked.
  StatusOr<std::string> Call(const std::string& method, const std::string& request);
  ScriptedRuntime::Inventory TakeInventory();
  nri::PodSandbox MessageOfSandbox(const std::string& id) const;
  void Apply(const nri::UpdateContainerResponse& response);
  void Merge(const nri::LinuxCPU& from, Box& box) const;
  std::string CgroupOf(const Box& box) const { return cgroup_root_ + "/qrm-test/" + box.id; }
  /// With the CPUs that its cgroup has.
  Box Seen(const Box& box) const;

  const std::string nri_socket_;
  const std::string cri_socket_;
  const std::string cgroup_root_;
  std::atomic<Updates> updates_ = Updates::kWork;
  int closed_synchronizations_ = 0;  ///< of NRI sockets that are closed
  std::mutex hook_;                  // containerd holds one around every hook
  mutable Mutex mutex_;
  int64_t serial_ QRM_GUARDED_BY(mutex_) = 0;
  int era_ QRM_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Sandbox> sandboxes_ QRM_GUARDED_BY(mutex_);
  std::map<std::string, Box> boxes_ QRM_GUARDED_BY(mutex_);
  int leaves_out_ QRM_GUARDED_BY(mutex_) = 0;              // so many times yet
  std::set<std::string> left_out_ QRM_GUARDED_BY(mutex_);  // ids
  std::set<std::string> unheard_ QRM_GUARDED_BY(mutex_);   // those of which qrmd does not know
  std::set<std::string> by_cri_ QRM_GUARDED_BY(mutex_);    // of which it knows by CRI only
  std::unique_ptr<ModelCri> cri_;
  /// Null while it serves no NRI. Changes with `hook_` locked. Last, for its threads ask the
  /// others.
  std::unique_ptr<ScriptedRuntime> nri_;
};

}  // namespace qrm::test
