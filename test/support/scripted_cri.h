// A CRI runtime service on a real socket, with a script's behaviour.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "api/proto/runtime/v1/api.pb.h"

namespace qrm::test {

/// Makes the pods that CRI calls ask for. Each call may wait.
struct CriPodMaker {
  using Id = StatusOr<std::string>;

  std::function<Id(const ::runtime::v1::RunPodSandboxRequest&)> run;
  std::function<Id(const ::runtime::v1::CreateContainerRequest&)> create;
  std::function<Status(const std::string& sandbox_id)> stop;
  std::function<Status(const std::string& sandbox_id)> remove;
};

/// Answers Version, the lists, ContainerStatus, GetContainerEvents and UpdateContainerResources,
/// and notes the updates. It has no containers: it lists what a test has set.
///
/// Threads: any.
class ScriptedCri {
 public:
  using Update = ::runtime::v1::UpdateContainerResourcesRequest;

  explicit ScriptedCri(const std::string& socket);
  ~ScriptedCri();
  ScriptedCri(const ScriptedCri&) = delete;
  ScriptedCri& operator=(const ScriptedCri&) = delete;

  /// From now on pods and containers can be made over CRI; every image is there.
  void MakePodsBy(CriPodMaker maker);

  /// The runtime that it says it is; by default the one of ScriptedRuntime.
  void SetRuntime(const std::string& name, const std::string& version);

  /// Replaces the one with the same id, as does PutContainer.
  void PutPod(const ::runtime::v1::PodSandbox& pod);
  void RemovePod(const std::string& id);
  void PutContainer(const ::runtime::v1::Container& container);
  void RemoveContainer(const std::string& id);
  /// What ContainerStatus reports about the container beside what the list does: JSON under "info".
  void SetInfo(const std::string& id, const std::string& json);
  void SetResources(const std::string& id, const ::runtime::v1::LinuxContainerResources& values);
  /// The lists fail with this; an OK status ends that.
  void FailLists(const Status& status);

  /// GetContainerEvents is UNIMPLEMENTED from now on; streams that are open stay.
  void WithoutEvents();
  /// Sends an event to every open stream. False when there is none.
  bool SendEvent(::runtime::v1::ContainerEventType type, const std::string& container_id);
  /// Ends the open streams, as a runtime that stops does.
  void BreakEvents();
  int event_streams() const;  ///< that were opened so far
  int lists() const;          ///< ListContainers calls so far

  /// Every update so far, in the order they came.
  std::vector<Update> updates() const;
  std::size_t update_count() const;
  /// The updates of one container, each with the number of all updates before it.
  std::vector<std::pair<std::size_t, Update>> UpdatesOf(const std::string& container_id) const;
  /// The next updates fail with this; an OK status ends that.
  void FailUpdates(const Status& status);
  /// Updates to a cpuset that names one of `cpus` fail from now on, as the kernel's cgroup v1 has
  /// it.
  void SetOffline(const CpuSet& cpus);
  /// Calls are answered late from now on.
  void SetDelay(std::chrono::milliseconds delay);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::test
