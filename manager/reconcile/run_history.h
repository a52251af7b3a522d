// The results of the reconciler's runs, for the status and the log.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "checkpoint/node_state.h"
#include "manager/reconcile/reconcile_status.h"

namespace qrm::manager {

/// Counts runs, remembers when containers were updated, and logs problems when they begin.
///
/// Threads: any may ask; Note and NoteUpdated on the state loop.
class RunHistory {
 public:
  struct Run {
    bool whole = false;        ///< the run compared everything
    std::size_t taken = 0;     ///< updates that the runtime accepted
    std::size_t deferred = 0;  ///< containers whose updates are deferred
    std::vector<std::string> problems;
  };

  explicit RunHistory(std::chrono::milliseconds period) { status_.period = period; }

  /// A run has ended. A lasting problem is logged when it begins, not in every period.
  void Note(const Run& run);
  /// The containers have new values now. Containers that are not in `state` are forgotten.
  void NoteUpdated(const std::vector<ContainerKey>& keys, const checkpoint::NodeState& state);

  ReconcileStatus GetStatus() const;
  std::optional<std::chrono::system_clock::time_point> LastUpdateOf(const ContainerKey& key) const;

 private:
  std::set<std::string> reported_;  ///< problems of the latest whole run and of later runs

  mutable Mutex mutex_;
  ReconcileStatus status_ QRM_GUARDED_BY(mutex_);
  std::map<ContainerKey, std::chrono::system_clock::time_point> updated_at_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
