// Runs dry runs on a thread of their own, so that no admission waits for them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/status.h"
#include "manager/demand/new_pod.h"

namespace qrm {
class Machine;
class TaskThread;
}  // namespace qrm

namespace qrm::placement {
struct AdmissionOptions;
}  // namespace qrm::placement

namespace qrm::manager {

class ClassBook;
class DryRun;
struct DryRunReport;
class Plugins;
class Snapshots;

/// Runs one dry run after another on its own thread; the state loop is not involved.
/// Threads: any.
class DryRuns {
 public:
  /// All outlive it.
  struct Parts {
    Plugins& plugins;
    const Machine& machine;
    const Clock& clock;
    /// Why kubelet places containers and qrmd does not, one sentence each; none when it does.
    std::function<std::vector<std::string>()> conflicts;
    /// The source that would tell the spec of a pod that comes now.
    std::function<SpecsFrom()> specs_from;
    const Snapshots* state = nullptr;    ///< as DryRun's
    const ClassBook* classes = nullptr;  ///< as DryRun's
  };
  using Done = std::function<void(StatusOr<DryRunReport>)>;

  DryRuns(Parts parts, const placement::AdmissionOptions& options, placement::PodKeys pod_keys);
  ~DryRuns();
  DryRuns(const DryRuns&) = delete;
  DryRuns& operator=(const DryRuns&) = delete;

  /// What would become of the pod in the serialized k8s.io.api.core.v1.Pod `pod` if it came now;
  /// `done` runs once, on the thread of the dry runs or at once.
  /// Errors: those of ReadNewPod; kResourceExhausted when too many wait, kUnavailable after Stop.
  void Ask(std::string pod, const Done& done);

  /// Answers those that wait with kUnavailable, and returns when the last has its answer. May be
  /// repeated.
  void Stop();

 private:
  Status Queue(std::string pod, const Done& done);
  /// Leaves the queue; false after Stop.
  bool TakeTurn();
  StatusOr<DryRunReport> Run(const std::string& pod) const;

  const Parts parts_;
  const std::chrono::milliseconds deadline_;  // of one dry run, once it has its turn
  const placement::PodKeys pod_keys_;
  const std::unique_ptr<const DryRun> dry_run_;

  Mutex mutex_;
  std::size_t waiting_ QRM_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<TaskThread> thread_ QRM_GUARDED_BY(mutex_);  ///< null after Stop
};

}  // namespace qrm::manager
