// Compares what recorded containers request now with their records.
#pragma once

#include <chrono>
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

/// The containers that run with less than they now request.
struct PendingStatus {
  std::size_t containers = 0;
  std::string why;  ///< of one such container; empty when there is none
};

/// The single comparison of requests for all sources of changes: compares what kubelet's specs and
/// the runtime show of a container with its record. Where they differ, plugins are asked again. A
/// rejected resize is pending, and is tried again by each comparison of all containers.
///
/// Each container is a job of its own on the state loop, so that creations do not wait for all of
/// them. Cost: the containers whose record, spec or shown values have changed since the last
/// comparison, and kRetries pending ones.
///
/// Threads: the state loop only, except for GetStatus and WhyPending.
class Resizes {
 public:
  /// kAgain: the resize was rejected before, and no caller waits for it. kReview: its requests are
  /// the recorded ones, and its compute driver wants to change its CPUs.
  enum class Attempt { kFirst, kAgain, kReview };
  using Admit = std::function<Status(const placement::ContainerDemand&, Attempt)>;
  static constexpr std::size_t kRetries = 64;
  /// Between two reviews of a driver's containers.
  static constexpr std::chrono::seconds kReviewPeriod{1};

  /// `parts` outlive the object. `admit` admits a running container.
  Resizes(const NodeParts& parts, Admit admit, ResizeRetries retries)
      : parts_(parts), admit_(std::move(admit)), retries_(retries) {}

  /// Compares all existing containers on record.
  void CompareAll();
  /// Compares one container whose shown values have just changed.
  void Compare(const ContainerKey& key);
  /// The next comparison looks at every container, since plugins may now take other requests.
  void ForgetCompared() { compared_.reset(); }
  /// Tries pending resizes again: more room is free.
  void RetryPending();
  /// The compute driver wants to change CPUs of its containers: asks it about each. Within
  /// kReviewPeriod of the last time, the next comparison of all containers does so.
  void Review(const std::string& driver);

  /// Threads: any.
  PendingStatus GetStatus() const;
  /// Why the container is pending; empty when it is not. Threads: any.
  std::string WhyPending(const ContainerKey& key) const;

 private:
  /// A container whose resize was rejected.
  struct Pending {
    std::string why;
    Shared<std::map<std::string, double>> requests;
    Shared<std::map<std::string, double>> limits;
  };
  /// When a driver was last asked about all its containers.
  struct Reviews {
    std::chrono::steady_clock::time_point begun;
    bool is_due = false;
  };
  /// The revisions of the last comparison of all containers.
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
  void Place(const ContainerKey& key, const placement::ContainerDemand& demand, Attempt attempt);
  void EndReview(const ContainerKey& key);
  void LogKept(const std::string& why);
  void NotePending(const ContainerKey& key, const placement::ContainerDemand& demand,
                   std::string why);
  void Forget(const ContainerKey& key);

  const NodeParts& parts_;
  const Admit admit_;
  const ResizeRetries retries_;
  std::optional<Compared> compared_;
  std::set<ContainerKey> due_;
  std::map<ContainerKey, std::string> reviewed_;  // those of due_ that a driver wants to change
  std::map<std::string, Reviews> reviews_;        // by driver
  bool looking_ = false;                          // a job works on due_
  std::optional<ContainerKey> last_retried_;
  RepeatedLines refused_lines_;

  mutable Mutex mutex_;
  std::map<ContainerKey, Pending> pending_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
