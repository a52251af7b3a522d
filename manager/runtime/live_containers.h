// The table of the runtime's sandboxes and containers: the runtime's ids for the pod UIDs and
// container names in the state.
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

/// One container, by the runtime's reports.
struct LiveContainer {
  SharedText id;
  SharedText pod_id;
  /// False from its creation until its first process runs. Updates have to wait until then, since
  /// a runtime that is just starting the container takes them and applies nothing.
  bool started = false;
  std::string cgroups_path;  ///< from the runtime; empty: not known
  uint32_t attempt = 0;      ///< how often it was created before, as far as known
  bool untold = false;       ///< CRI lists it, and NRI leaves it out
  ShownValues shown{};       ///< the values behind its current requests, as far as known

  bool operator==(const LiveContainer&) const = default;
};

/// The container as the runtime lists it.
inline LiveContainer ListedAs(const RuntimeContainer& container) {
  return {.id = container.id,
          .pod_id = container.pod_id,
          .started = Runs(container),
          .cgroups_path = container.cgroups_path,
          .attempt = container.attempt,
          .shown = ShownIn(container.resources, false)};
}

/// The source of a list of all that exists.
enum class ListSource { kNri, kCri };

/// CPUs that qrmd has written to a container's cgroup, and that the runtime has to take later.
struct DeferredCpus {
  std::string id;  ///< the container's
  CpuSet cpus;     ///< last written to its cgroup; empty: not known
  std::chrono::steady_clock::time_point since;
  /// The runtime may have other CPUs for the container than it last took from qrmd.
  bool runtime_differs = false;
  CpuSet sent;  ///< sent to the runtime, which has not answered; empty: none
  CpuSet told;  ///< qrmd's answer when the runtime asked meanwhile; it may still write these
};

/// A pod has ended when all its sandboxes have stopped and no container of it is left.
///
/// CRI's socket may belong to another runtime than NRI's. Until one of CRI's lists has had a
/// sandbox that NRI reported, CRI's lists end nothing that NRI reported.
///
/// Threads: any. Cost: look-ups are O(log n).
class LiveContainers {
 public:
  std::optional<LiveContainer> Find(const ContainerKey& key) const;
  bool HasPod(const std::string& pod_uid) const;
  /// True once the runtime has listed everything that exists.
  bool synchronized() const;
  std::map<ContainerKey, LiveContainer> All() const;
  /// The sandboxes of each pod, by its UID.
  std::map<std::string, std::set<std::string>> Pods() const;
  bool HasContainerOf(const std::string& pod_uid) const;
  /// True when the pod is known and all its sandboxes have stopped.
  bool HasStopped(const std::string& pod_uid) const;
  /// The UIDs of pods with a sandbox that has not stopped and came by a list. If the runtime has
  /// restarted since it created the sandbox, it does not report the sandbox's end.
  std::set<std::string> Listed() const;
  /// The names of the pod's containers that ran to their end once, and were not recreated.
  std::set<std::string> EndedOnce(const std::string& pod_uid) const;
  /// Whether the container has ended, and not for the first time.
  bool HasEndedAgain(const ContainerKey& key) const;
  /// Up to `count` containers that follow `key`, each once; the first follows the last.
  std::vector<std::pair<ContainerKey, LiveContainer>> After(const ContainerKey& key,
                                                            std::size_t count) const;
  /// A number that changes whenever a container is added, changed or removed.
  uint64_t revision() const;
  /// The containers that were added, changed or removed since that was `revision`; absent when it
  /// is too long ago, or a list has replaced the table since.
  std::optional<std::set<ContainerKey>> ChangedSince(uint64_t revision) const;

  void AddPod(const std::string& pod_uid, const std::string& pod_id);
  /// False when the pod has no other sandbox left.
  bool RemovePod(const std::string& pod_uid, const std::string& pod_id);
  /// True when the sandbox is known and had not stopped.
  bool MarkStopped(const std::string& pod_uid, const std::string& pod_id);
  /// Undoes MarkStopped, unless it came after `asked_at`: runtimes that restart may report stopped
  /// sandboxes too early.
  void MarkReady(const std::string& pod_uid, const std::string& pod_id,
                 std::chrono::steady_clock::time_point asked_at);
  /// Removes the pod if it has ended; true then.
  bool RemoveEnded(const std::string& pod_uid);
  /// The same for all pods; true when any was removed.
  bool RemoveAllEnded();

  /// The container's latest id; an older one of the same name is forgotten.
  void Add(const ContainerKey& key, LiveContainer container);
  /// The same for a container that only CRI reports.
  void AddUntold(const ContainerKey& key, LiveContainer container);
  /// True when the container has that id and was not marked before.
  bool MarkStarted(const ContainerKey& key, const std::string& id);
  /// The container of that id has `shown` from now on; values absent there stay.
  void NoteShown(const ContainerKey& key, const std::string& id, const ShownValues& shown);
  /// The container of that id has ended, or its creation was undone.
  void Remove(const ContainerKey& key, const std::string& id);
  /// `cpus` are being written to the cgroup of the container of that id, and the runtime has to
  /// take them later; empty: the written CPUs are not known.
  void Defer(const ContainerKey& key, const std::string& id, const CpuSet& cpus);
  /// The same, where the runtime may have other CPUs for the container than it last took from qrmd.
  void DeferOther(const ContainerKey& key, const std::string& id);
  /// The runtime is now sent `cpus`. False when other CPUs have been written meanwhile.
  bool BeginTelling(const ContainerKey& key, const std::string& id, const CpuSet& cpus);
  /// The runtime has asked, and qrmd answered `cpus`; false if the runtime was sent no CPUs.
  bool NoteTold(const ContainerKey& key, const std::string& id, const CpuSet& cpus);
  /// The runtime has answered. If it has taken the CPUs that were last written, none is deferred.
  void EndTelling(const ContainerKey& key, const std::string& id, bool taken);
  void ClearDeferred(const ContainerKey& key, const std::string& id);
  std::optional<DeferredCpus> FindDeferred(const ContainerKey& key, const std::string& id) const;
  std::set<ContainerKey> DeferredKeys() const;
  /// The containers that have some of `cpus`, or are about to get some from the runtime.
  std::map<ContainerKey, DeferredCpus> DeferredWith(const CpuSet& cpus) const;
  /// For how long no container or pod has been created, started or removed. Zero during such a
  /// step, for at most kLongestStep: until a container has started; and for a sandbox until its
  /// first container is created and after its last one has ended.
  std::chrono::steady_clock::duration QuietFor(std::chrono::steady_clock::time_point now) const;
  static constexpr std::chrono::seconds kLongestStep{10};
  /// By a list, the container does not exist any more; it was created `attempt` times before.
  void NoteEnded(const ContainerKey& key, uint32_t attempt);

  /// Replaces everything by a list of `source`, except for the pods of the UIDs in `kept`: they
  /// stay, even if none of their sandboxes is known. If NRI leaves out containers that only CRI has
  /// reported, and not their end, these stay; true then. A container without values in the list
  /// keeps those that it had.
  bool Reset(const std::map<SharedText, std::set<SharedText>>& pod_ids_by_uid,
             std::map<ContainerKey, LiveContainer> containers,
             const std::set<std::string>& kept = {}, ListSource source = ListSource::kNri);

  /// Compares CRI's list of the sandboxes `ids` with NRI's. Empty once a list of CRI has had a
  /// sandbox that NRI reported. Until then, returns the UIDs of pods with a container and with a
  /// sandbox that NRI reported and that has not stopped: CRI's lists then prove nothing.
  std::set<std::string> UnknownToCri(const std::set<std::string>& ids);
  /// Whether NRI has reported a container, and no list of CRI has had a sandbox of NRI's yet.
  bool AwaitsCri() const;

 private:
  struct Sandbox {
    std::optional<std::chrono::steady_clock::time_point> stopped_at;
    bool listed = false;    // came by a list, not by an event
    bool only_cri = false;  // NRI has not reported it
  };
  using Sandboxes = std::map<SharedText, Sandbox, std::less<>>;  // by the runtime's id

  static bool AllStopped(const Sandboxes& sandboxes);
  bool HasContainerLocked(const std::string& pod_uid) const QRM_REQUIRES(mutex_);
  void AddLocked(const ContainerKey& key, LiveContainer container) QRM_REQUIRES(mutex_);
  void Forget(const std::string& pod_uid) QRM_REQUIRES(mutex_);
  void NoteChange(const ContainerKey& key) QRM_REQUIRES(mutex_);
  /// Adds to NRI's list what only CRI has reported; true when there was something.
  bool KeepUntold(std::map<SharedText, Sandboxes, std::less<>>& pods,
                  std::map<ContainerKey, LiveContainer>& containers) const QRM_REQUIRES(mutex_);
  DeferredCpus* FindLocked(const ContainerKey& key, const std::string& id) QRM_REQUIRES(mutex_);
  void BeginStep(const ContainerKey& key) QRM_REQUIRES(mutex_);
  void EndStep(const ContainerKey& key) QRM_REQUIRES(mutex_);

  mutable Mutex mutex_;
  bool synchronized_ QRM_GUARDED_BY(mutex_) = false;
  bool cri_agrees_ QRM_GUARDED_BY(mutex_) = false;  // has listed a sandbox that NRI reported
  std::map<SharedText, Sandboxes, std::less<>> pods_ QRM_GUARDED_BY(mutex_);
  std::map<ContainerKey, LiveContainer> containers_ QRM_GUARDED_BY(mutex_);
  std::map<ContainerKey, DeferredCpus> deferred_ QRM_GUARDED_BY(mutex_);
  /// Since when containers have been starting, and, with an empty name, pods without containers.
  std::map<ContainerKey, std::chrono::steady_clock::time_point> under_way_ QRM_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point last_step_ QRM_GUARDED_BY(mutex_);
  std::map<ContainerKey, uint32_t> ended_ QRM_GUARDED_BY(mutex_);  // with their latest attempts
  uint64_t revision_ QRM_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, ContainerKey> changes_ QRM_GUARDED_BY(mutex_);  // the latest, by revision
};

}  // namespace qrm::manager
