// Tracks containers that run, or will run, without an admission: they started without us, or nobody
// served them.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/repeated_lines.h"
#include "api/base/status.h"
#include "manager/demand/demand_source.h"
#include "manager/pods/node_parts.h"
#include "manager/runtime/container.h"

namespace qrm::manager {

using PodAndContainer = std::pair<RuntimePod, RuntimeContainer>;

/// The containers that run although they were refused a place.
struct UnplacedStatus {
  std::size_t containers = 0;
  std::string why;  ///< of one of them; empty when there is none
};

/// `demand` without those of the pod's other containers that are not to be placed with it: those
/// that exist, since their values must be applied and not only promised, so that each is placed for
/// itself; and init containers before it, which have ended.
placement::ContainerDemand WithoutPlaced(placement::ContainerDemand demand,
                                         const LiveContainers& live);

/// Remembers such containers and tries to admit them after the fact; so it does with those on
/// record of which a plugin was not asked because it was not there yet. Until one has its place it
/// is kept off the CPUs that others own on record, whether their plugin is there or not.
///
/// After a start none is tried before the plugins that were there before have registered, or the
/// grace for them is over: what the first one gave would bind the others to its nodes.
///
/// Threads: the state loop only, but for GetStatus.
class Unplaced {
 public:
  using Admit = std::function<Status(const placement::ContainerDemand&)>;

  /// `parts` outlive the object. `admit` admits a container that runs. The grace begins now.
  Unplaced(const NodeParts& parts, Admit admit, std::chrono::milliseconds spec_deadline,
           std::chrono::milliseconds grace)
      : parts_(parts),
        admit_(std::move(admit)),
        spec_deadline_(spec_deadline),
        grace_end_(DeadlineAfter(grace)) {}

  void Add(const RuntimePod& pod, const RuntimeContainer& container);
  void Erase(const ContainerKey& key);
  /// Forgets those that are no longer live, or live under another id.
  void EraseEnded();

  /// Adds those on record that would have been asked for of the plugin of `resource`, had it been
  /// there.
  void AddIncomplete(const std::string& resource);
  /// Tries each, one behind what was posted meanwhile, so that no creation waits for all of them,
  /// or for the spec of one.
  void TryAll();
  /// The same for those of `keys`, from the last to the first.
  void Try(std::vector<ContainerKey> keys);
  /// Those that are not on record.
  std::vector<ContainerKey> Keys() const;
  /// Moves those that have no place off the CPUs that others own now.
  void LeaveOwnedCpus();

  /// Whether plugins that were there before the start have yet to register, within the grace.
  bool AwaitsPlugins() const;

  /// Threads: any.
  UnplacedStatus GetStatus() const;

 private:
  bool IsLive(const ContainerKey& key, const RuntimeContainer& container) const;
  bool IsWaiting(const ContainerKey& key);
  void Place(const ContainerKey& key, const StatusOr<placement::ContainerDemand>& demand);
  void NoteRefusals();
  void FindDemand(const ContainerKey& key, DemandSource::Found found);
  bool MayUse(const ContainerKey& key, const CpuSet& owned) const;
  void MoveOff(const ContainerKey& key, const std::string& cpus);

  const NodeParts& parts_;
  const Admit admit_;
  const std::chrono::milliseconds spec_deadline_;
  const Deadline grace_end_;
  std::map<ContainerKey, PodAndContainer> containers_;  // not on record
  std::set<ContainerKey> incomplete_;                   // on record
  RepeatedLines refused_lines_;
  std::map<ContainerKey, std::string> refused_;   // why
  std::map<ContainerKey, std::string> moved_to_;  // CPUs

  mutable Mutex mutex_;
  UnplacedStatus status_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
