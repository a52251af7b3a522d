// Counts runs, and separates new problems from lasting ones.
#include "manager/reconcile/run_history.h"

#include "api/base/log.h"

namespace qrm::manager {

void RunHistory::Note(const Run& run) {
  for (const std::string& problem : run.problems) {
    if (!reported_.contains(problem)) {
      log::Warning("reconcile found a problem", {{"error", problem}});
    }
  }
  if (run.whole) {
    reported_.clear();
  }
  reported_.insert(run.problems.begin(), run.problems.end());
  const MutexLock lock(mutex_);
  status_.updates += run.taken;
  status_.deferred = run.deferred;
  status_.failures += run.problems.size();
  if (run.whole) {
    ++status_.runs;
    status_.last = std::chrono::steady_clock::now();
  }
  if (run.whole || !run.problems.empty()) {
    status_.last_problem = run.problems.empty() ? std::string() : run.problems.front();
  }
}

void RunHistory::NoteUpdated(const std::vector<ContainerKey>& keys,
                             const checkpoint::NodeState& state) {
  const auto now = std::chrono::system_clock::now();
  const MutexLock lock(mutex_);
  std::erase_if(updated_at_, [&](const auto& entry) { return state.Find(entry.first) == nullptr; });
  for (const ContainerKey& key : keys) {
    updated_at_[key] = now;
  }
}

ReconcileStatus RunHistory::GetStatus() const {
  const MutexLock lock(mutex_);
  return status_;
}

std::optional<std::chrono::system_clock::time_point> RunHistory::LastUpdateOf(
    const ContainerKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = updated_at_.find(key);
  return found == updated_at_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace qrm::manager
