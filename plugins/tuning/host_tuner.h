// Sets classes of CPUs on the machine, by the journalled executor.
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
#include "plugins/host/host_files.h"
#include "plugins/host/host_knobs.h"
#include "plugins/tuning/resolve.h"

namespace qrm::tuning {

/// Writes on a thread of its own. What the files held before is in the journal, and comes back when
/// no class asks for another value; a process that ends leaves all as it is, for the next one.
///
/// Threads: one at a time.
class HostTuner {
 public:
  /// `files` and `clock` outlive it. No other tuner uses `journal` meanwhile.
  HostTuner(host::HostFiles& files, std::string journal, const Clock& clock)
      : files_(files), journal_(std::move(journal)), clock_(clock) {}
  /// Finishes what was asked for.
  ~HostTuner() = default;
  HostTuner(const HostTuner&) = delete;
  HostTuner& operator=(const HostTuner&) = delete;

  /// Has the machine be as `plan` says, soon; what it no longer says is put back. To be called with
  /// the same plan now and then, which repairs what others changed. Returns at once.
  void Tune(const TuningPlan& plan);

  /// Why CPUs of class `name` are not as they are to be, in one sentence; empty: they are, or will
  /// be soon.
  std::string ProblemOf(const std::string& name) const;

  /// Waits until all that was asked for was tried.
  void Finish();

 private:
  void Work();
  std::vector<TuningProblem> Apply(const TuningPlan& plan);
  Status OpenKnobs();
  using TimePoint = std::chrono::steady_clock::time_point;

  std::vector<host::Claim> Unrefused(const Resolved& resolved, TimePoint now);
  void NoteRefusals(const std::vector<host::Refusal>& refusals, const Resolved& resolved,
                    TimePoint now);
  void Report(std::vector<TuningProblem> problems);

  host::HostFiles& files_;
  const std::string journal_;
  const Clock& clock_;
  /// A value that the machine did not take. Each attempt costs two writes of the journal, so that
  /// it waits longer and longer for the next one.
  struct Refused {
    std::string value;
    std::string reason;
    std::chrono::seconds pause{0};
    TimePoint next;
  };

  // On the thread.
  std::unique_ptr<host::HostKnobs> knobs_;
  std::map<std::string, Refused> refused_;  // by path
  // Those of whoever calls Tune.
  TuningPlan asked_;
  std::optional<TimePoint> asked_at_;

  mutable Mutex mutex_;
  std::optional<TuningPlan> next_ QRM_GUARDED_BY(mutex_);
  std::vector<TuningProblem> problems_ QRM_GUARDED_BY(mutex_);
  TaskThread thread_;  // ends before what it uses
};

}  // namespace qrm::tuning
