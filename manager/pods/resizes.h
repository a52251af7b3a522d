// Compares what containers on record ask for now with what their records were made for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "api/base/mutex.h"
#include "api/base/repeated_lines.h"
#include "api/base/status.h"
#include "manager/demand/demand_source.h"
#include "manager/pods/node_parts.h"
#include "manager/pods/pods_options.h"
#include "manager/runtime/live_containers.h"

namespace qrm::checkpoint {
class NodeState;
}  // namespace qrm::checkpoint

namespace qrm::manager {

/// The containers that run with less than they request now.
struct PendingStatus {
  std::size_t containers = 0;
  std::string why;  ///< of one of them; empty when there is none
};

/// The one comparison of requests, whoever tells of a change: what kubelet's specs and the runtime
/// show of a container against its record. Where they differ, plugins are asked again; what they
/// refuse is pending, and is tried again with each comparison of all.
///
/// Each container is looked at in the order of the state loop's jobs, so that no creation waits for
/// all of them. Cost: of the containers of which a record, a spec or the runtime's word changed
/// since the last comparison, and of kRetries pending ones.
///
/// Threads: the state loop only, but for GetStatus and WhyPending.
class Resizes {
 public:
  /// kAgain: it was refused before, and nobody waits for it.
  enum class Attempt { kFirst, kAgain };
  using Admit = std::function<Status(const placement::ContainerDemand&, Attempt)>;
  static constexpr std::size_t kRetries = 64;

  /// `parts` outlive the object. `admit` admits a container that runs.
  Resizes(const NodeParts& parts, Admit admit, ResizeRetries retries)
      : parts_(parts), admit_(std::move(admit)), retries_(retries) {}

  /// Compares all containers on record that exist.
  void CompareAll();
  /// Compares one of which something was told just now.
  void Compare(const ContainerKey& key);
  /// The next comparison of all looks at each: plugins may take other requests than before.
  void ForgetCompared() { compared_.reset(); }
  /// Tries pending ones again: there is more room.
  void RetryPending();

  /// Threads: any.
  PendingStatus GetStatus() const;
  /// Why the container is pending; empty when it is not. Threads: any.
  std::string WhyPending(const ContainerKey& key) const;

 private:
  /// A container that was refused what it asks for.
  struct Pending {
    std::string why;
    Shared<std::map<std::string, double>> requests;
    Shared<std::map<std::string, double>> limits;
  };
  /// With what all were compared.
  struct Compared {
    std::shared_ptr<const checkpoint::NodeState> state;
    uint64_t live = 0;
    uint64_t specs = 0;
  };

  void AddChanged(const Compared& now);
  void AddPending();
  void Continue();
  bool Look(const ContainerKey& key);
  std::optional<placement::ContainerDemand> DemandNow(const checkpoint::NodeState& state,
                                                      const ContainerKey& key,
                                                      const LiveContainer& live);
  bool IsHeldBack(const ContainerKey& key, const placement::ContainerDemand& demand) const;
  void Place(const ContainerKey& key, const placement::ContainerDemand& demand);
  void NotePending(const ContainerKey& key, const placement::ContainerDemand& demand,
                   std::string why);
  void Forget(const ContainerKey& key);

  const NodeParts& parts_;
  const Admit admit_;
  const ResizeRetries retries_;
  std::optional<Compared> compared_;
  std::set<ContainerKey> due_;
  bool looking_ = false;  // a job looks at those that are due
  std::optional<ContainerKey> last_retried_;
  RepeatedLines refused_lines_;

  mutable Mutex mutex_;
  std::map<ContainerKey, Pending> pending_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
