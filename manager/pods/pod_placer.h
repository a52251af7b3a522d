// Places containers, and releases what pods held that are gone.
#pragma once

#include <chrono>
#include <functional>
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

/// Decides on the state loop what becomes of containers that the runtime creates, resizes or runs
/// without an admission, and of pods that `live` no longer has. What a container asks for is found
/// before, so that the state loop never waits for a source of specs. An admission that lacks room
/// gets that of the pods that have ended, which was kept for their return.
///
/// Threads: any, but OnReconciled, CompareAllRequests and OnDiskReturned. None of them waits.
class PodPlacer {
 public:
  /// `parts` outlive the placer, and what it has begun. `adoption_grace` begins now; RetryUnplaced
  /// is for its caller to call when it is over.
  PodPlacer(const NodeParts& parts, std::chrono::milliseconds admission_deadline,
            std::chrono::milliseconds adoption_grace = {},
            ResizeRetries retries = ResizeRetries::kOn);

  /// Answers a creation, in the order of those of its pod.
  void Create(RuntimePod pod, RuntimeContainer container, RuntimeEvents::AdjustmentReply reply);
  /// Runs `done` once the container may start: others have left the CPUs that it owns, and it those
  /// of others, which it may have been made with. At once where nobody owns CPUs, else on the state
  /// loop. Errors: those of MakeRoomFor; where cgroups may not be written, only for a container of
  /// a compute driver.
  void Start(const ContainerKey& key, std::function<void(const Status&)> done);
  /// Asks plugins again for a container of which the live ones show other values than before.
  void CompareRequests(const ContainerKey& key);
  /// The runtime is told now to give `cpus` to a container that runs.
  void NoteUpdate(const ContainerKey& key, CpuSet cpus) { updates_.Note(key, std::move(cpus)); }
  /// `containers` are all that exist: those that are not known are admitted after the fact, values
  /// that differ from ours are applied again, pods that are gone are removed.
  void Adopt(std::vector<RuntimePod> pods, std::vector<RuntimeContainer> containers);
  /// The same for containers that were not there at the latest look.
  void AdoptObserved(std::vector<PodAndContainer> fresh);
  /// The container is gone, if it has not been created anew.
  void Forget(const ContainerKey& key);
  /// Removes the pods that `live` no longer has, or the one of `uid` if it is such a one.
  void RemoveGone();
  void RemoveGone(const std::string& uid);
  /// Tries again to admit the containers that run without an admission, and compares what all
  /// others request with their records.
  void RetryUnplaced();
  /// The same, and those of which the plugin of `resource` was not asked because it was not there.
  void OnPluginRegistered(const std::string& resource);
  /// Plugins were asked what containers have now: those that run without an admission leave the
  /// CPUs that others own. Threads: the state loop.
  void OnReconciled();
  /// A whole reconcile: asks plugins again for the containers that request something else than
  /// their records say. Threads: the state loop.
  void CompareAllRequests();
  /// Makes up for removals and placements that failed while the disk refused changes. Threads: the
  /// state loop.
  void OnDiskReturned();
  UnplacedStatus unplaced() const { return unplaced_.GetStatus(); }
  const Resizes& resizes() const { return resizes_; }

 private:
  /// A creation that the runtime waits for.
  struct Creation {
    RuntimePod pod;
    RuntimeContainer container;
    Deadline deadline;
    RuntimeEvents::AdjustmentReply reply;
  };

  // On the state loop.
  void Answer(const Creation& creation, const StatusOr<placement::ContainerDemand>& found);
  StatusOr<ContainerAdjustment> Decide(const Creation& creation,
                                       const StatusOr<placement::ContainerDemand>& found);
  StatusOr<RunOptions> Admit(const placement::ContainerDemand& demand, AdmissionMoment moment,
                             Deadline deadline);
  Status MakeRoom(const placement::ContainerDemand& demand);
  Status HandOver(const ContainerKey& key);
  Status ClearCpusOf(const ContainerKey& key, const NodeCpusets& node) const;
  Status UnlessReadOnly(Status handed_over);
  Status AdmitRunning(const placement::ContainerDemand& demand);
  void ReleaseEarlierContainers(const placement::ContainerDemand& demand, AdmissionMoment moment);
  bool HasEndedBefore(const placement::ContainerDemand& demand, const std::string& other,
                      AdmissionMoment moment) const;
  void ReleaseInitContainers(const std::string& pod_uid);
  void Release(const std::vector<ContainerKey>& ended);
  void PlaceAll(const std::vector<RuntimePod>& pods,
                const std::vector<RuntimeContainer>& containers);
  void PlaceFresh(const std::vector<PodAndContainer>& fresh);
  bool NoteFound(const checkpoint::NodeState& state, const ContainerKey& key,
                 const RuntimeContainer& container, const CpuSet& offline,
                 checkpoint::Change& change);
  void CommitDistrust(const checkpoint::Change& change);
  Status PlaceResized(const placement::ContainerDemand& demand, Resizes::Attempt attempt);
  void RemoveGonePods();
  void RemovePods(const std::vector<std::string>& gone);
  bool OwnsCpusAlone(const ContainerKey& key) const;

  NodeCpusets CpusetsOf(const checkpoint::NodeState& state);

  const NodeParts& parts_;
  const std::chrono::milliseconds admission_deadline_;
  UpdatesUnderWay updates_;
  RepeatedLines refusals_;  // used on the state loop only, as the next one
  Unplaced unplaced_;
  Resizes resizes_;
  bool read_only_told_ = false;  ///< used on the state loop only, as the next one
  bool all_removed_ = true;      ///< the latest removal has come about; used on the state loop only
};

}  // namespace qrm::manager
