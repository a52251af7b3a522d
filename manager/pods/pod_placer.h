// Places containers, and releases the allocations of pods that are gone.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/base/clock.h"
#include "api/base/repeated_lines.h"
#include "api/base/status.h"
#include "manager/pods/hand_over.h"
#include "manager/pods/node_parts.h"
#include "manager/pods/resizes.h"
#include "manager/pods/unplaced.h"
#include "manager/runtime/run_options.h"
#include "manager/runtime/runtime_events.h"

namespace qrm::manager {

enum class AdmissionMoment;

/// Decides on the state loop about containers that the runtime creates, resizes or runs without an
/// admission, and about pods that `live` no longer has. Requests are found before, so that the
/// state loop never waits for a source of specs. An admission that lacks room releases the
/// allocations of terminated pods, which are otherwise reserved in case these pods restart.
///
/// Threads: any, except for OnReconciled, CompareAllRequests and OnDiskReturned. No call waits.
class PodPlacer {
 public:
  /// `parts` outlive the placer and all its jobs. `adoption_grace` begins now; the caller calls
  /// RetryUnplaced at its end.
  PodPlacer(const NodeParts& parts, std::chrono::milliseconds admission_deadline,
            std::chrono::milliseconds adoption_grace = {},
            ResizeRetries retries = ResizeRetries::kOn);

  /// Answers a creation; the creations of one pod are answered in their order.
  void Create(RuntimePod pod, RuntimeContainer container, RuntimeEvents::AdjustmentReply reply);
  /// Runs `done` once the container may start: other containers have left its exclusive CPUs, and
  /// it has left theirs, which it may have been created with. At once if no container has
  /// exclusive CPUs, else on the state loop. Errors: those of MakeRoomFor; where cgroups cannot be
  /// written, only for a container of a compute driver.
  void Start(const ContainerKey& key, std::function<void(const Status&)> done);
  /// Compares the requests of a container whose shown values have changed with its record.
  void CompareRequests(const ContainerKey& key);
  /// The runtime was just asked to give `cpus` to a running container.
  void NoteUpdate(const ContainerKey& key, CpuSet cpus) { updates_.Note(key, std::move(cpus)); }
  /// `containers` are all that exist: admits unknown ones after the fact, applies recorded values
  /// again where they differ, and removes pods that are gone.
  void Adopt(std::vector<RuntimePod> pods, std::vector<RuntimeContainer> containers);
  /// The same for containers that the latest look did not find.
  void AdoptObserved(std::vector<PodAndContainer> fresh);
  /// The container is gone, unless it was recreated.
  void Forget(const ContainerKey& key);
  /// Removes the pods that `live` no longer has; with `uid`, only that pod.
  void RemoveGone();
  void RemoveGone(const std::string& uid);
  /// Tries again to admit running containers without an admission, and compares the requests of
  /// all others with their records.
  void RetryUnplaced();
  /// The same, and asks the plugin of `resource` about containers that were admitted without it.
  void OnPluginRegistered(const std::string& resource);
  /// A reconcile has taken the plugins' latest allocations: moves unpinned containers off
  /// exclusive CPUs. Threads: the state loop.
  void OnReconciled();
  /// Part of a whole reconcile: asks plugins again about containers whose requests differ from
  /// their records, and about those for which they have allocated nothing. Threads: the state loop.
  void CompareAllRequests();
  /// Repeats removals and admissions that failed while the disk rejected writes. Threads: the state
  /// loop.
  void OnDiskReturned();
  const Unplaced& unplaced() const { return unplaced_; }
  const Resizes& resizes() const { return resizes_; }
  Resizes& resizes() { return resizes_; }

 private:
  /// A creation that the runtime waits for.
  struct Creation {
    RuntimePod pod;
    RuntimeContainer container;
    Deadline deadline;
    RuntimeEvents::AdjustmentReply reply;
  };

  /// What is on record of running containers.
  struct Found {
    std::vector<ContainerKey> unknown;  ///< without a record
    bool incomplete = false;            ///< any lacks recorded values
    bool no_record = false;             ///< of any container
  };

  // On the state loop.
  void Answer(const Creation& creation, const StatusOr<placement::ContainerDemand>& found);
  StatusOr<ContainerAdjustment> Decide(const Creation& creation,
                                       const StatusOr<placement::ContainerDemand>& found);
  StatusOr<RunOptions> Admit(const placement::ContainerDemand& demand, AdmissionMoment moment,
                             Deadline deadline);
  Status HandOver(const ContainerKey& key);
  Status ClearCpusOf(const ContainerKey& key, const NodeCpusets& node) const;
  Status UnlessReadOnly(Status handed_over);
  StatusOr<std::vector<std::string>> AdmitRunning(const placement::ContainerDemand& demand);
  void ReleaseEarlierContainers(const placement::ContainerDemand& demand, AdmissionMoment moment);
  bool IsRemade(const placement::ContainerDemand& demand) const;
  bool HasEndedBefore(const placement::ContainerDemand& demand, const std::string& other,
                      AdmissionMoment moment) const;
  void ReleaseInitContainers(const std::string& pod_uid);
  void Release(const std::vector<ContainerKey>& ended);
  void ReleaseUnreleased();
  void PlaceAll(const std::vector<RuntimePod>& pods,
                const std::vector<RuntimeContainer>& containers);
  void PlaceFresh(const std::vector<PodAndContainer>& fresh);
  Found NoteFound(const std::vector<PodAndContainer>& containers);
  Status PlaceResized(const placement::ContainerDemand& demand, Resizes::Attempt attempt);
  void RemoveGonePods();
  void RemovePods(const std::vector<std::string>& gone);
  bool OwnsCpusAlone(const ContainerKey& key) const;

  NodeCpusets CpusetsOf(const checkpoint::NodeState& state);

  const NodeParts& parts_;
  const std::chrono::milliseconds admission_deadline_;
  UpdatesUnderWay updates_;
  // Used on the state loop only.
  RepeatedLines refusals_;
  Unplaced unplaced_;
  Resizes resizes_;
  std::shared_ptr<const checkpoint::NodeState> retried_;  ///< when unplaced_ was last tried
  bool read_only_told_ = false;
  std::set<ContainerKey> unreleased_;  ///< init containers that have ended: the disk failed
  bool all_removed_ = true;            ///< whether the latest removal has succeeded
};

}  // namespace qrm::manager
