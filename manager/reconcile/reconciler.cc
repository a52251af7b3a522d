// One run of the reconciler goes from the I/O loop through the plugins to the state loop, back to
// the I/O loop for the runtime's updates, and ends on the state loop.
#include "manager/reconcile/reconciler.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/clock.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "manager/reconcile/plan.h"
#include "manager/reconcile/settler.h"
#include "manager/reconcile/update_runner.h"

namespace qrm::manager {

using checkpoint::Change;
using checkpoint::ContainerRecord;
using checkpoint::NodeState;

namespace {

/// Whom a run asks.
struct Scope {
  bool nobody() const { return !all && resources.empty(); }
  void Add(const std::string& resource) {
    all = all || resource.empty();
    resources.insert(resource);
  }

  bool all = false;
  std::set<std::string> resources;  // counts unless all are asked
};

/// The input of a run; two runs with the same input would do the same.
struct Sight {
  std::shared_ptr<const NodeState> state;
  std::map<std::string, std::shared_ptr<const void>> answers;  // their identities, by plugin
  uint64_t live = 0;                                           // revision of the live containers
  CpuSet offline;

  bool operator==(const Sight&) const = default;
};

/// Whom a run asked, and the state that it asked about.
struct Inquiry {
  std::shared_ptr<const NodeState> state;
  std::set<std::string> unasked;  // plugins that speak for themselves in another run
  bool whole = false;             // all were asked
};

}  // namespace

struct Reconciler::Impl : std::enable_shared_from_this<Reconciler::Impl> {
  Impl(Parts given, ReconcileOptions given_options)
      : parts(std::move(given)), options(given_options), timer(parts.io) {
    status.period = options.period;
  }

  // On the I/O loop.
  void ArmTimer();
  void Want(const std::string& resource);
  void StartRun();
  std::set<std::string> Unasked(const Scope& scope) const;
  void SendUpdates(std::vector<PlannedUpdate> updates);
  void EndRun();

  // On the state loop.
  void Apply(const Inquiry& inquiry, const AllocationsByPlugin& answers);
  std::optional<Sight> See(const Inquiry& inquiry, const AllocationsByPlugin& answers) const;
  void TellOfAnswers(const AllocationsByPlugin& answers) const;
  Status RepairDrift();
  Settler::Parts SettlerParts();
  bool NoteResult(const UpdateResult& result, const NodeState& state, Change& change);
  void CommitApplied(const std::vector<UpdateResult>& results);
  void NoteUpdates(const std::vector<ContainerKey>& updated);
  void Report(const std::vector<std::string>& found);

  template <typename Work>
  void PostToIo(Work work) {
    boost::asio::post(parts.io, [self = shared_from_this(), work = std::move(work)]() mutable {
      if (!self->stopped) {
        work();
      }
    });
  }
  template <typename Work>
  void PostToState(Work work) {
    parts.state.Post([self = shared_from_this(), work = std::move(work)]() mutable {
      if (!self->stopped) {
        work();
      }
    });
  }

  const Parts parts;
  const ReconcileOptions options;
  std::atomic<bool> stopped{false};

  // Used on the I/O loop only.
  boost::asio::steady_timer timer;
  bool running = false;
  Scope next;  // of the run after this one; nobody: there is none

  // Used on the state loop only.
  std::optional<Sight> rest;          // the input of the latest complete run that had nothing to do
  std::vector<std::string> problems;  // of the current run
  CpuSet offline;                     // in the current run
  std::set<std::string> reported;     // problems of the run before
  std::shared_ptr<Settler> settler;   // made with the object

  mutable Mutex mutex;
  ReconcileStatus status QRM_GUARDED_BY(mutex);
  std::map<ContainerKey, std::chrono::system_clock::time_point> updated_at QRM_GUARDED_BY(mutex);
};

Reconciler::Reconciler(Parts parts, ReconcileOptions options)
    : impl_(std::make_shared<Impl>(std::move(parts), options)) {
  impl_->settler = std::make_shared<Settler>(impl_->SettlerParts());
}

Reconciler::~Reconciler() {
  impl_->stopped = true;
  impl_->settler->Stop();
}

Settler::Parts Reconciler::Impl::SettlerParts() {
  return {.state = parts.state,
          .plugins = parts.plugins,
          .live = parts.live,
          .machine = parts.machine,
          .admission = parts.admission,
          .on_taught = [weak = weak_from_this()](const std::string& resource) {
            if (const auto self = weak.lock(); self != nullptr) {
              self->PostToIo([impl = self.get(), resource] { impl->Want(resource); });
            }
          }};
}

void Reconciler::Start() {
  impl_->ArmTimer();
}

void Reconciler::Stop() {
  impl_->stopped = true;
  impl_->settler->Stop();
  impl_->timer.cancel();
}

void Reconciler::Trigger(const std::string& resource) {
  impl_->PostToIo([impl = impl_.get(), resource] { impl->Want(resource); });
}

std::optional<std::chrono::system_clock::time_point> Reconciler::LastUpdateOf(
    const ContainerKey& key) const {
  const MutexLock lock(impl_->mutex);
  const auto found = impl_->updated_at.find(key);
  return found == impl_->updated_at.end() ? std::nullopt : std::optional(found->second);
}

ReconcileStatus Reconciler::GetStatus() const {
  const MutexLock lock(impl_->mutex);
  return impl_->status;
}

void Reconciler::Impl::ArmTimer() {
  timer.expires_after(options.period);
  timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && !self->stopped) {
      self->ArmTimer();
      self->Want({});
    }
  });
}

void Reconciler::Impl::Want(const std::string& resource) {
  next.Add(resource);
  if (!running) {
    StartRun();
  }
}

void Reconciler::Impl::StartRun() {
  running = true;
  const Scope scope = std::exchange(next, {});
  Inquiry inquiry{parts.state.Load(), Unasked(scope), scope.all};
  const auto is_meant = [&scope](const PluginInfo& plugin) {
    return (scope.all && plugin.options.need_reconcile) ||
           scope.resources.contains(plugin.resource);
  };
  parts.plugins.AskAll<calls::GetResourcesAllocation>(
      parts.plugins.Live(is_meant), {}, DeadlineAfter(parts.admission.plugin_call_deadline),
      [self = shared_from_this(),
       inquiry = std::move(inquiry)](AllocationsByPlugin answers) mutable {
        self->PostToState([impl = self.get(), inquiry = std::move(inquiry),
                           answers = std::move(answers)] { impl->Apply(inquiry, answers); });
      });
}

std::set<std::string> Reconciler::Impl::Unasked(const Scope& scope) const {
  std::set<std::string> unasked;
  if (!scope.all) {
    for (const PluginInfo& plugin : parts.plugins.List()) {
      if (plugin.live && plugin.options.need_reconcile &&
          !scope.resources.contains(plugin.resource)) {
        unasked.insert(plugin.resource);
      }
    }
  }
  return unasked;
}

void Reconciler::Impl::Apply(const Inquiry& inquiry, const AllocationsByPlugin& answers) {
  const bool aside = parts.stands_aside();
  offline = parts.machine.OfflineNow();
  const Status repaired = inquiry.whole && !aside ? RepairDrift() : OkStatus();
  const std::optional<Sight> sight = See(inquiry, answers);
  if (sight.has_value() && sight == rest) {
    TellOfAnswers(answers);
    CommitApplied({});
    return;
  }
  ReconcilePlan plan =
      PlanReconcile(*inquiry.state, *parts.state.Load(), answers, parts.machine, inquiry.unasked);
  TellOfOffline(*parts.state.Load(), parts.live.All(), offline, plan.problems);
  problems = settler->TakeProblems();
  problems.insert(problems.end(), plan.problems.begin(), plan.problems.end());
  if (!repaired.ok()) {
    problems.push_back(MessageOf(repaired));
  }
  if (!plan.change.Empty()) {
    if (const Status saved = parts.state.Remember(plan.change); !saved.ok()) {
      problems.push_back(MessageOf(Annotate(saved, "cannot keep changed allocations")));
    }
  }
  settler->Settle(plan);
  TellOfAnswers(answers);
  std::vector<PlannedUpdate> updates =
      aside ? std::vector<PlannedUpdate>()
            : PlanUpdates(*parts.state.Load(), parts.live.All(), offline);
  const bool idle = plan.change.Empty() && plan.orphans.empty() && plan.missing.empty() &&
                    problems.empty() && !plan.stale && updates.empty() && !aside;
  if (!idle || sight.has_value()) {
    rest = idle ? sight : std::nullopt;
  }
  PostToIo([this, stale = plan.stale, updates = std::move(updates)]() mutable {
    if (stale) {
      next.Add({});
    }
    SendUpdates(std::move(updates));
  });
}

void Reconciler::Impl::TellOfAnswers(const AllocationsByPlugin& answers) const {
  for (const auto& [plugin, answer] : answers) {
    if (answer.ok()) {
      parts.on_answer(plugin);
    }
  }
}

// Nothing for a run of some plugins only, or when something changed or failed meanwhile.
std::optional<Sight> Reconciler::Impl::See(const Inquiry& inquiry,
                                           const AllocationsByPlugin& answers) const {
  Sight sight{.state = parts.state.Load(), .live = parts.live.revision(), .offline = offline};
  if (!inquiry.unasked.empty() || sight.state != inquiry.state) {
    return std::nullopt;
  }
  for (const auto& [plugin, answer] : answers) {
    if (!answer.ok()) {
      return std::nullopt;
    }
    sight.answers.emplace(plugin, answer->identity());
  }
  return sight;
}

// The updates that follow apply again what is no longer recorded as applied.
Status Reconciler::Impl::RepairDrift() {
  const Change change = parts.drift.Find(*parts.state.Load(), offline);
  return change.Empty() ? OkStatus()
                        : Annotate(parts.state.Commit(change),
                                   "cannot repair cpusets that somebody else changed");
}

void Reconciler::Impl::SendUpdates(std::vector<PlannedUpdate> updates) {
  if (updates.empty()) {
    PostToState([this] { CommitApplied({}); });
    return;
  }
  RunUpdates(parts.runtime, std::move(updates), options.concurrent_updates,
             [self = shared_from_this()](std::vector<UpdateResult> results) {
               self->PostToState([impl = self.get(), results = std::move(results)] {
                 impl->CommitApplied(results);
               });
             });
}

// True when the container has its new values. One that ended, or was removed, meanwhile is no
// problem.
bool Reconciler::Impl::NoteResult(const UpdateResult& result, const NodeState& state,
                                  Change& change) {
  const auto& [update, taken] = result;
  const ContainerRecord* record = state.Find(update.key);
  if (taken.code() == StatusCode::kNotFound) {
    return false;
  }
  std::string problem =
      taken.ok() ? parts.drift.ReadBack(update.key, update.properties, offline) : MessageOf(taken);
  if (record != nullptr) {
    const Taken how = problem.empty() ? Taken::kYes : Taken::kUnknown;
    if (ContainerRecord now = AfterUpdate(*record, update, how); now != *record) {
      change.put_containers.push_back(
          {state.FindPod(update.key.pod_uid)->meta, update.key.container, std::move(now)});
    }
  }
  if (!problem.empty()) {
    problems.push_back(std::move(problem));
    return false;
  }
  if (record == nullptr) {
    return false;
  }
  log::Info("container updated",
            {{"pod", update.key.pod_uid},
             {"container", update.key.container},
             {"values", fmt::format("{}", fmt::join(update.properties, " "))}});
  return true;
}

void Reconciler::Impl::CommitApplied(const std::vector<UpdateResult>& results) {
  const auto state = parts.state.Load();
  Change change;
  std::vector<ContainerKey> updated;
  for (const UpdateResult& result : results) {
    if (NoteResult(result, *state, change)) {
      updated.push_back(result.update.key);
    }
  }
  if (!updated.empty()) {
    NoteUpdates(updated);
  }
  // Without a change it writes what the disk has refused until now.
  if (const Status saved = parts.state.Remember(change); !saved.ok()) {
    problems.push_back(MessageOf(Annotate(saved, "cannot note what containers have now")));
  }
  {
    const MutexLock lock(mutex);
    ++status.runs;
    status.updates += static_cast<uint64_t>(
        std::count_if(results.begin(), results.end(),
                      [](const UpdateResult& result) { return result.status.ok(); }));
    status.failures += problems.size();
    status.last = std::chrono::steady_clock::now();
    status.last_problem = problems.empty() ? std::string() : problems.front();
  }
  Report(std::exchange(problems, {}));
  PostToIo([this] { EndRun(); });
}

// Drops containers that are gone, so that the table is no larger than the state.
void Reconciler::Impl::NoteUpdates(const std::vector<ContainerKey>& updated) {
  const auto now = std::chrono::system_clock::now();
  const auto state = parts.state.Load();
  const MutexLock lock(mutex);
  std::erase_if(updated_at, [&](const auto& entry) { return state->Find(entry.first) == nullptr; });
  for (const ContainerKey& key : updated) {
    updated_at[key] = now;
  }
}

// A problem that lasts is logged when it begins, not in every period.
void Reconciler::Impl::Report(const std::vector<std::string>& found) {
  for (const std::string& problem : found) {
    if (!reported.contains(problem)) {
      log::Warning("reconcile found a problem", {{"error", problem}});
    }
  }
  reported = {found.begin(), found.end()};
}

void Reconciler::Impl::EndRun() {
  running = false;
  if (!next.nobody()) {
    StartRun();
  }
}

}  // namespace qrm::manager
