// The table of sandboxes and containers that the runtime has now: its ids for what the state names
// by pod UID and container name.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/base/mutex.h"
#include "api/resource.h"
#include "manager/runtime/container.h"

namespace qrm::manager {

/// One container as the runtime knows it.
struct LiveContainer {
  SharedText id;
  SharedText pod_id;
  /// False from its creation until its first process runs: updates have to wait until then, since
  /// a runtime that is just starting it takes them and applies nothing.
  bool started = false;
  std::string cgroups_path;  ///< as the runtime gives it; empty when it does not
  uint32_t attempt = 0;      ///< how often it was made before, as far as that is known
  bool untold = false;       ///< CRI lists it, and NRI leaves it out
  ShownValues shown{};       ///< what it requests now, as far as the runtime tells

  bool operator==(const LiveContainer&) const = default;
};

/// Who gives a list of all that exists.
enum class ListSource { kNri, kCri };

/// CPUs that qrmd gave a container in the kernel, and of which the runtime has yet to be told.
struct DeferredCpus {
  std::string id;  ///< the container's
  CpuSet cpus;     ///< what its cgroup was given last; empty: not known
  std::chrono::steady_clock::time_point since;
  /// The runtime may have other CPUs for it than it last took from us.
  bool runtime_differs = false;
  CpuSet sent;  ///< the runtime was sent these and has not answered; empty: none
  CpuSet told;  ///< it has asked what to write meanwhile and was told these, which it may yet write
};

/// A pod has ended when all its sandboxes have stopped and no container of it is left.
///
/// CRI's socket may be of another runtime than the one that NRI tells of. Its lists end nothing
/// that NRI told of before one of them has had a sandbox that NRI told of.
///
/// Threads: any. Cost: look-ups are O(log n).
class LiveContainers {
 public:
  std::optional<LiveContainer> Find(const ContainerKey& key) const;
  bool HasPod(const std::string& pod_uid) const;
  /// True once the runtime has told everything that exists.
  bool synchronized() const;
  std::map<ContainerKey, LiveContainer> All() const;
  /// The sandboxes of each pod, by its UID.
  std::map<std::string, std::set<std::string>> Pods() const;
  bool HasContainerOf(const std::string& pod_uid) const;
  /// True when the pod is known and all its sandboxes have stopped.
  bool HasStopped(const std::string& pod_uid) const;
  /// The pods with a sandbox that has not stopped and came by a list, by their UIDs: the runtime
  /// may have told of it before it was started anew, and tells no more when it stops.
  std::set<std::string> Listed() const;
  /// The names of the pod's containers that ran to their end when they were made for the first
  /// time, and have not been made again.
  std::set<std::string> EndedOnce(const std::string& pod_uid) const;
  /// Whether the container has ended, and not for the first time.
  bool HasEndedAgain(const ContainerKey& key) const;
  /// Up to `count` containers that follow `key`, and after the last the first ones: each once.
  std::vector<std::pair<ContainerKey, LiveContainer>> After(const ContainerKey& key,
                                                            std::size_t count) const;
  /// A number that changes whenever a container is added, changed or removed.
  uint64_t revision() const;
  /// What was added, changed or removed since that was `revision`; absent when it is too long ago
  /// or a list told it.
  std::optional<std::set<ContainerKey>> ChangedSince(uint64_t revision) const;

  void AddPod(const std::string& pod_uid, const std::string& pod_id);
  /// False when the pod has no other sandbox left.
  bool RemovePod(const std::string& pod_uid, const std::string& pod_id);
  /// True when the sandbox is known and had not stopped.
  bool MarkStopped(const std::string& pod_uid, const std::string& pod_id);
  /// Takes the former back, unless it was told after `asked_at`: runtimes that restart may tell it
  /// too early.
  void MarkReady(const std::string& pod_uid, const std::string& pod_id,
                 std::chrono::steady_clock::time_point asked_at);
  /// Removes the pod if it has ended; true then.
  bool RemoveEnded(const std::string& pod_uid);
  /// The same for all pods; true when there was one.
  bool RemoveAllEnded();

  /// The container's latest id; an older one of the same name is forgotten.
  void Add(const ContainerKey& key, LiveContainer container);
  /// The same for one of which only CRI tells.
  void AddUntold(const ContainerKey& key, LiveContainer container);
  /// True when that is news, about the container's latest id.
  bool MarkStarted(const ContainerKey& key, const std::string& id);
  /// The container of that id has `shown` from now on, and what that leaves out as before.
  void NoteShown(const ContainerKey& key, const std::string& id, const ShownValues& shown);
  /// The container of that id has ended, or its creation was undone.
  void Remove(const ContainerKey& key, const std::string& id);
  /// The cgroup of the container of that id is given `cpus`, and the runtime is told later; empty:
  /// what it has is not known.
  void Defer(const ContainerKey& key, const std::string& id, const CpuSet& cpus);
  /// The same, where the runtime may have other CPUs for the container than it last took from us.
  void DeferOther(const ContainerKey& key, const std::string& id);
  /// The runtime is sent `cpus` now. False when the container has others meanwhile.
  bool BeginTelling(const ContainerKey& key, const std::string& id, const CpuSet& cpus);
  /// The runtime has asked, and was told to write `cpus`; false where nothing was sent to it.
  bool NoteTold(const ContainerKey& key, const std::string& id, const CpuSet& cpus);
  /// It has answered. Nothing is deferred any more when it has taken what the container still has.
  void EndTelling(const ContainerKey& key, const std::string& id, bool taken);
  void ClearDeferred(const ContainerKey& key, const std::string& id);
  std::optional<DeferredCpus> FindDeferred(const ContainerKey& key, const std::string& id) const;
  std::set<ContainerKey> DeferredKeys() const;
  /// Those that have, or are about to be given by the runtime, some of `cpus`.
  std::map<ContainerKey, DeferredCpus> DeferredWith(const CpuSet& cpus) const;
  /// For how long nothing has been created, started or removed; zero while something is, for at
  /// most kLongestStep: a container until it has started, a sandbox until its first container is
  /// created and after its last one has ended.
  std::chrono::steady_clock::duration QuietFor(std::chrono::steady_clock::time_point now) const;
  static constexpr std::chrono::seconds kLongestStep{10};
  /// A container that is not there any more, by a list, which was made `attempt` times before.
  void NoteEnded(const ContainerKey& key, uint32_t attempt);

  /// Replaces everything with what a list of `source` told, but for the pods of the UIDs in `kept`:
  /// they stay, also when none of their sandboxes is known. What only CRI told of, and has not told
  /// to have ended, stays when NRI leaves it out; true then. A container that the list shows
  /// without values keeps those that it had.
  bool Reset(const std::map<SharedText, std::set<SharedText>>& pod_ids_by_uid,
             std::map<ContainerKey, LiveContainer> containers,
             const std::set<std::string>& kept = {}, ListSource source = ListSource::kNri);

  /// CRI lists the sandboxes `ids`. The UIDs of the pods that have a container, and a sandbox that
  /// NRI told of and that has not stopped, while no list had a sandbox that NRI told of: the list
  /// then proves nothing.
  std::set<std::string> UnknownToCri(const std::set<std::string>& ids);

 private:
  struct Sandbox {
    std::optional<std::chrono::steady_clock::time_point> stopped_at;
    bool listed = false;    // came by a list, not by an event
    bool only_cri = false;  // NRI has not told of it
  };
  using Sandboxes = std::map<SharedText, Sandbox, std::less<>>;  // by the runtime's id

  static bool AllStopped(const Sandboxes& sandboxes);
  bool HasContainerLocked(const std::string& pod_uid) const QRM_REQUIRES(mutex_);
  void AddLocked(const ContainerKey& key, LiveContainer container) QRM_REQUIRES(mutex_);
  void Forget(const std::string& pod_uid) QRM_REQUIRES(mutex_);
  void NoteChange(const ContainerKey& key) QRM_REQUIRES(mutex_);
  /// Adds to what NRI lists what only CRI told of; true when there was something.
  bool KeepUntold(std::map<SharedText, Sandboxes, std::less<>>& pods,
                  std::map<ContainerKey, LiveContainer>& containers) const QRM_REQUIRES(mutex_);
  DeferredCpus* FindLocked(const ContainerKey& key, const std::string& id) QRM_REQUIRES(mutex_);
  void BeginStep(const ContainerKey& key) QRM_REQUIRES(mutex_);
  void EndStep(const ContainerKey& key) QRM_REQUIRES(mutex_);

  mutable Mutex mutex_;
  bool synchronized_ QRM_GUARDED_BY(mutex_) = false;
  bool cri_agrees_ QRM_GUARDED_BY(mutex_) = false;  // has listed a sandbox that NRI told of
  std::map<SharedText, Sandboxes, std::less<>> pods_ QRM_GUARDED_BY(mutex_);
  std::map<ContainerKey, LiveContainer> containers_ QRM_GUARDED_BY(mutex_);
  std::map<ContainerKey, DeferredCpus> deferred_ QRM_GUARDED_BY(mutex_);
  /// Since when containers are starting, and, with an empty name, pods have no container.
  std::map<ContainerKey, std::chrono::steady_clock::time_point> under_way_ QRM_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point last_step_ QRM_GUARDED_BY(mutex_);
  std::map<ContainerKey, uint32_t> ended_ QRM_GUARDED_BY(mutex_);  // their latest attempts
  uint64_t revision_ QRM_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, ContainerKey> changes_ QRM_GUARDED_BY(mutex_);  // the latest, by revision
};

}  // namespace qrm::manager
