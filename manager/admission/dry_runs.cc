// Queues a few dry runs for one thread.
#include "manager/admission/dry_runs.h"

#include <random>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "api/base/task_thread.h"
#include "manager/admission/dry_run.h"

namespace qrm::manager {
namespace {

/// Further dry runs would wait longer than qrmctl does.
constexpr std::size_t kMostWaiting = 4;

Status Stopped() {
  return Errorf(StatusCode::kUnavailable,
                "cannot try the pod: qrmd is stopping; try again when it has restarted");
}

/// Unique, because plugins may keep values by UID.
std::string FreshUid() {
  std::random_device random;
  return fmt::format("dry-run-{:08x}{:08x}", random(), random());
}

std::string EstimateNote(const std::vector<std::string>& unseen) {
  std::string note =
      "kubelet does not report pod specs to qrmd now (kubelet-pods-socket, kubelet-url): each "
      "container is placed by itself at its creation, by the CPUs and memory that its cgroup shows";
  if (!unseen.empty()) {
    note += fmt::format("; its requests of {} are not known then", fmt::join(unseen, ", "));
  }
  return note;
}

}  // namespace

DryRuns::DryRuns(Parts parts, const placement::AdmissionOptions& options,
                 placement::PodKeys pod_keys)
    : parts_(std::move(parts)),
      deadline_(options.deadline),
      pod_keys_(std::move(pod_keys)),
      dry_run_(new DryRun({.plugins = parts_.plugins,
                           .machine = parts_.machine,
                           .clock = parts_.clock,
                           .state = parts_.state,
                           .classes = parts_.classes},
                          options)),
      thread_(std::make_unique<TaskThread>()) {}

DryRuns::~DryRuns() {
  Stop();
}

void DryRuns::Ask(std::string pod, const Done& done) {
  if (const Status queued = Queue(std::move(pod), done); !queued.ok()) {
    done(queued);
  }
}

Status DryRuns::Queue(std::string pod, const Done& done) {
  const MutexLock lock(mutex_);
  if (thread_ == nullptr) {
    return Stopped();
  }
  if (waiting_ == kMostWaiting) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot try the pod: {} other dry runs are waiting; try again in a second",
                  waiting_);
  }
  ++waiting_;
  thread_->Post([this, pod = std::move(pod), done] { done(TakeTurn() ? Run(pod) : Stopped()); });
  return OkStatus();
}

void DryRuns::TakeRules(const placement::AdmissionOptions& options) {
  const MutexLock lock(mutex_);
  if (thread_ != nullptr) {
    thread_->Post([this, options] { dry_run_->TakeRules(options); });
  }
}

bool DryRuns::TakeTurn() {
  const MutexLock lock(mutex_);
  --waiting_;
  return thread_ != nullptr;
}

StatusOr<DryRunReport> DryRuns::Run(const std::string& pod) const {
  const SpecsFrom specs = parts_.specs_from();
  QRM_ASSIGN_OR_RETURN(const NewPod wanted, ReadNewPod(pod, FreshUid(), pod_keys_, specs));
  if (const std::vector<std::string> reasons = parts_.not_ready(); !reasons.empty()) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot say what would become of the pod while qrmd is not ready: {}",
                  fmt::join(reasons, "; "));
  }
  DryRunReport report = dry_run_->Run(wanted.admissions, DeadlineAfter(deadline_));
  if (specs == SpecsFrom::kCgroups && report.result != DryRunReport::Result::kSkipped) {
    report.notes.push_back(EstimateNote(wanted.unseen));
  }
  return report;
}

void DryRuns::Stop() {
  std::unique_ptr<TaskThread> ended;
  {
    const MutexLock lock(mutex_);
    ended = std::move(thread_);
  }
}

}  // namespace qrm::manager
