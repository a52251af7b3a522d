// Sets profiles of CPUs on the machine, through KernelValues.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/task_thread.h"
#include "plugins/kernel/kernel_files.h"
#include "plugins/kernel/kernel_values.h"
#include "plugins/kernel/resolve.h"

namespace qrm::kernel {

/// Writes on its own thread. The original values are in the journal, and are restored when no
/// profile sets another value. When the process ends, all values stay for the next process.
///
/// Threads: one at a time.
class HostTuner {
 public:
  /// `files` and `clock` must outlive it. No other tuner may use `journal` meanwhile.
  HostTuner(KernelFiles& files, std::string journal, const Clock& clock)
      : files_(files), journal_(std::move(journal)), clock_(clock) {}
  /// Finishes the requested work.
  ~HostTuner() = default;
  HostTuner(const HostTuner&) = delete;
  HostTuner& operator=(const HostTuner&) = delete;

  /// Applies `plan` to the machine soon, and restores values that are no longer in it. Call it with
  /// the same plan now and then to correct drift. Returns at once.
  void Tune(const TuningPlan& plan);

  /// Why the profile `name` is not in effect, in one sentence; empty: it is, or will be soon.
  std::string ProblemOf(const std::string& name) const;

  /// Waits until all requested values have been tried.
  void Finish();

 private:
  void Work();
  std::vector<TuningProblem> Apply(const TuningPlan& plan);
  Status OpenKnobs();
  using TimePoint = std::chrono::steady_clock::time_point;

  std::vector<Claim> Unrefused(const Resolved& resolved, TimePoint now);
  void NoteRefusals(const std::vector<Refusal>& refusals, const Resolved& resolved, TimePoint now);
  void Report(std::vector<TuningProblem> problems);

  KernelFiles& files_;
  const std::string journal_;
  const Clock& clock_;
  /// A value that the machine rejected. Each attempt costs two journal writes, so the pauses
  /// between attempts grow.
  struct Refused {
    std::string value;
    std::string reason;
    std::chrono::seconds pause{0};
    TimePoint next;
  };

  // Used on thread_.
  std::unique_ptr<KernelValues> knobs_;
  std::map<std::string, Refused> refused_;  // by path
  // Used by the caller of Tune.
  TuningPlan asked_;
  std::optional<TimePoint> asked_at_;

  mutable Mutex mutex_;
  std::optional<TuningPlan> next_ QRM_GUARDED_BY(mutex_);
  std::vector<TuningProblem> problems_ QRM_GUARDED_BY(mutex_);
  TaskThread thread_;  // ends before what it uses
};

}  // namespace qrm::kernel
