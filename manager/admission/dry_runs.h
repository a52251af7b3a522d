// Executes dry runs on a separate thread, so that no admission waits for them.
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

/// Executes one dry run after another on its own thread; the state loop is not involved.
/// Threads: any.
class DryRuns {
 public:
  /// All outlive it.
  struct Parts {
    Plugins& plugins;
    const Machine& machine;
    const Clock& clock;
    /// Why qrmd admits no pod now, one sentence each; empty while it is ready.
    std::function<std::vector<std::string>()> not_ready;
    /// The source of the specs of pods that are created now.
    std::function<SpecsFrom()> specs_from;
    const Snapshots* state = nullptr;    ///< as DryRun's
    const ClassBook* classes = nullptr;  ///< as DryRun's
  };
  using Done = std::function<void(StatusOr<DryRunReport>)>;

  DryRuns(Parts parts, const placement::AdmissionOptions& options, placement::PodKeys pod_keys);
  ~DryRuns();
  DryRuns(const DryRuns&) = delete;
  DryRuns& operator=(const DryRuns&) = delete;

  /// Tries the serialized k8s.io.api.core.v1.Pod `pod`; `done` runs once, on the thread of the dry
  /// runs or within the call.
  /// Errors: those of ReadNewPod; kFailedPrecondition while qrmd is not ready, kResourceExhausted
  /// if too many wait, kUnavailable after Stop.
  void Ask(std::string pod, const Done& done);

  /// As Admitter's, for dry runs that are asked for later.
  void TakeRules(const placement::AdmissionOptions& options);

  /// Answers waiting dry runs with kUnavailable, and returns when the last has its answer. May be
  /// called again.
  void Stop();

 private:
  Status Queue(std::string pod, const Done& done);
  /// Leaves the queue; false after Stop.
  bool TakeTurn();
  StatusOr<DryRunReport> Run(const std::string& pod) const;

  const Parts parts_;
  const std::chrono::milliseconds deadline_;  // of one dry run, once it has its turn
  const placement::PodKeys pod_keys_;
  const std::unique_ptr<DryRun> dry_run_;  ///< used on the thread

  Mutex mutex_;
  std::size_t waiting_ QRM_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<TaskThread> thread_ QRM_GUARDED_BY(mutex_);  ///< null after Stop
};

}  // namespace qrm::manager
