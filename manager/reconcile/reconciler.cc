// One run of the reconciler goes from the I/O loop through the plugins to the state loop, back to
// the I/O loop for the runtime's updates, and ends on the state loop.
#include "manager/reconcile/reconciler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "api/base/clock.h"
#include "manager/reconcile/change_questions.h"
#include "manager/reconcile/deferred_updates.h"
#include "manager/reconcile/drift.h"
#include "manager/reconcile/plan.h"
#include "manager/reconcile/run_history.h"
#include "manager/reconcile/seen.h"
#include "manager/reconcile/settler.h"
#include "manager/reconcile/update_runner.h"
#include "manager/registry/plugins.h"
#include "manager/runtime/cri/cri_client.h"
#include "manager/runtime/live_containers.h"
#include "topology/machine.h"

namespace qrm::manager {

using checkpoint::Change;
using checkpoint::NodeState;

namespace {

/// The longest wait at the start for a runtime that does not run, or reports nothing until
/// something happens.
constexpr std::chrono::seconds kLongestWait{2};

}  // namespace

struct Reconciler::Impl : std::enable_shared_from_this<Reconciler::Impl> {
  Impl(Parts given, ReconcileOptions given_options)
      : parts(std::move(given)),
        options(given_options),
        timer(parts.io),
        patience(parts.io),
        soon(parts.io),
        telling(parts.io),
        questions(parts.plugins),
        updated(parts.live),
        deferred({.read = parts.writes_cpusets ? parts.drift.parts().read : CpusetSource(),
                  .live = parts.live,
                  .writes = parts.drift.parts().writes},
                 options.deferral),
        moved(parts.read_memory, parts.live),
        history(options.period) {}

  // On any thread.
  void Trigger(const std::string& resource);

  // On the I/O loop.
  void ArmTimer();
  void AwaitRuntime();
  void StartIfIdle();
  void WantChanges();
  void StartRun();
  void StartWhole();
  void StartChanges();
  void EndChanges(const ChangedAnswers& answers, const Changes& done, bool stale);
  void SendUpdates(std::vector<PlannedUpdate> updates);
  void EndRun(std::size_t untold);
  void TellSoon(std::chrono::milliseconds wait);
  void Tell(const std::optional<PlannedUpdate>& update);

  // On the state loop.
  void Apply(const Inquiry& inquiry, const AllocationsByPlugin& answers);
  void ApplyChanges(const std::shared_ptr<const NodeState>& asked, const Changes& about,
                    const ChangedAnswers& answers);
  void TakeOver(const ReconcilePlan& plan);
  std::vector<PlannedUpdate> UpdatesOf(const std::map<ContainerKey, LiveContainer>& live);
  void LookAtDeferred();
  void CommitApplied(const std::vector<UpdateResult>& results);

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

  /// Runs `work` on the I/O loop after `wait`, unless `at` is set again or the reconciler stops.
  template <typename Work>
  void After(std::chrono::milliseconds wait, boost::asio::steady_timer& at, Work work) {
    at.expires_after(wait);
    at.async_wait([self = shared_from_this(),
                   work = std::move(work)](const boost::system::error_code& error) {
      if (!error && !self->stopped) {
        work();
      }
    });
  }

  const Parts parts;
  const ReconcileOptions options;
  std::atomic<bool> stopped{false};

  // Used on the I/O loop only.
  boost::asio::steady_timer timer;
  boost::asio::steady_timer patience;
  boost::asio::steady_timer soon;
  boost::asio::steady_timer telling;
  bool wanted_soon = false;  // a small run, by the timer
  bool tells_soon = false;   // a deferred update, by the timer
  bool running = false;
  bool waited = false;  // long enough for the runtime
  Scope next;           // of the run after this one, if any
  Changes changes;      // of the small run after that
  ChangeQuestions questions;

  // Used on the state loop only.
  ComparedAnswers compared;
  UpdatedContainers updated;
  std::vector<std::string> problems;  // of the current run
  bool is_whole = false;              // the current run
  CpuSet offline;                     // in the current run
  std::shared_ptr<Settler> settler;   // made with the object

  DeferredUpdates deferred;
  MovedMemory moved;  // by updates of earlier runs

  RunHistory history;
};

Reconciler::Reconciler(Parts parts, ReconcileOptions options)
    : impl_(std::make_shared<Impl>(std::move(parts), options)) {
  const Parts& used = impl_->parts;
  impl_->settler = std::make_shared<Settler>(
      Settler::Parts{.state = used.state,
                     .plugins = used.plugins,
                     .live = used.live,
                     .machine = used.machine,
                     .admission = used.admission,
                     .on_taught = [weak = impl_->weak_from_this()](const std::string& resource) {
                       if (const auto self = weak.lock(); self != nullptr) {
                         self->Trigger(resource);
                       }
                     }});
}

Reconciler::~Reconciler() {
  impl_->stopped = true;
  impl_->settler->Stop();
}

void Reconciler::Start() {
  impl_->ArmTimer();
  impl_->AwaitRuntime();
}

void Reconciler::Stop() {
  impl_->stopped = true;
  impl_->settler->Stop();
  impl_->timer.cancel();
  impl_->patience.cancel();
  impl_->soon.cancel();
  impl_->telling.cancel();
}

void Reconciler::Trigger(const std::string& resource) {
  impl_->Trigger(resource);
}

void Reconciler::TriggerChanges(const std::optional<ContainerKey>& started) {
  impl_->PostToIo([impl = impl_.get(), started] {
    if (started.has_value()) {
      impl->changes.started.insert(*started);
    }
    impl->WantChanges();
  });
}

void Reconciler::TriggerChangesSoon() {
  impl_->PostToIo([impl = impl_.get()] {
    if (std::exchange(impl->wanted_soon, true)) {
      return;
    }
    impl->After(kSoon, impl->soon, [impl] {
      if (impl->wanted_soon) {
        impl->WantChanges();
      }
    });
  });
}

std::optional<std::chrono::system_clock::time_point> Reconciler::LastUpdateOf(
    const ContainerKey& key) const {
  return impl_->history.LastUpdateOf(key);
}

ReconcileStatus Reconciler::GetStatus() const {
  return impl_->history.GetStatus();
}

void Reconciler::Impl::ArmTimer() {
  After(options.period, timer, [this] {
    ArmTimer();
    next.Add({});
    StartIfIdle();
  });
}

// At a start, the needed updates are known only after the runtime has reported its containers. A
// run before that would only delay the first useful run.
void Reconciler::Impl::AwaitRuntime() {
  After(std::min<std::chrono::milliseconds>(options.period, kLongestWait), patience, [this] {
    waited = true;
    if (!next.nobody() || changes.wanted) {
      StartIfIdle();
    }
  });
}

void Reconciler::Impl::Trigger(const std::string& resource) {
  PostToIo([this, resource] {
    next.Add(resource);
    StartIfIdle();
  });
}

void Reconciler::Impl::StartIfIdle() {
  if (!running && (waited || parts.live.synchronized())) {
    StartRun();
  }
}

void Reconciler::Impl::WantChanges() {
  changes.wanted = true;
  StartIfIdle();
}

void Reconciler::Impl::StartRun() {
  running = true;
  next.nobody() ? StartChanges() : StartWhole();
}

void Reconciler::Impl::StartChanges() {
  wanted_soon = false;
  questions.Ask(DeadlineAfter(parts.admission.plugin_call_deadline),
                [self = shared_from_this(), asked = parts.state.Load(),
                 about = std::exchange(changes, {})](ChangedAnswers answers) mutable {
                  self->PostToState([impl = self.get(), asked = std::move(asked),
                                     about = std::move(about), answers = std::move(answers)] {
                    impl->ApplyChanges(asked, about, answers);
                  });
                });
}

void Reconciler::Impl::StartWhole() {
  const Scope scope = std::exchange(next, {});
  if (scope.all) {
    changes = {};  // a whole run includes them
    wanted_soon = false;
    questions.AskAnew();
  }
  const auto is_unasked = [&scope](const PluginInfo& plugin) {
    return !scope.all && plugin.options.need_reconcile &&
           !scope.resources.contains(plugin.resource);
  };
  const std::vector<std::string> unasked = parts.plugins.Live(is_unasked);
  Inquiry inquiry{parts.state.Load(), {unasked.begin(), unasked.end()}, scope.all};
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

void Reconciler::Impl::Apply(const Inquiry& inquiry, const AllocationsByPlugin& answers) {
  const bool aside = parts.stands_aside();
  is_whole = true;
  offline = parts.machine.OfflineNow();
  Status repaired;
  if (inquiry.whole && !aside) {
    // The updates that follow apply the values again that are no longer recorded as applied.
    const Change drift = parts.drift.Find(*parts.state.Load(), offline);
    repaired = drift.Empty() ? OkStatus()
                             : Annotate(parts.state.Commit(drift), "cannot correct cpuset drift");
  }
  const std::vector<std::string> left_behind = moved.Look();
  const auto now = parts.state.Load();
  ReconcilePlan plan = PlanReconcile(*inquiry.state, *now, answers, parts.machine,
                                     {inquiry.unasked, compared.ToCompare(inquiry, answers, *now)});
  compared.Note(inquiry, answers, plan);
  if (!offline.Empty()) {
    TellOfOffline(*now, parts.live.All(), offline, plan.problems);
  }
  problems = settler->TakeProblems();
  problems.insert(problems.end(), left_behind.begin(), left_behind.end());
  if (!repaired.ok()) {
    problems.push_back(MessageOf(repaired));
  }
  TakeOver(plan);
  for (const auto& [plugin, answer] : answers) {
    if (answer.ok()) {
      parts.on_answer(plugin);
    }
  }
  if (inquiry.whole) {
    parts.on_whole_run();
  }
  std::vector<PlannedUpdate> updates;
  if (aside) {
    updated.Forget();
  } else {
    updates = UpdatesOf(updated.ToUpdate(parts.state.Load(), offline));
    updated.Note(updates);
  }
  PostToIo([this, stale = plan.stale, updates = std::move(updates)]() mutable {
    if (stale) {
      next.Add({});
    }
    SendUpdates(std::move(updates));
  });
}

void Reconciler::Impl::TakeOver(const ReconcilePlan& plan) {
  problems.insert(problems.end(), plan.problems.begin(), plan.problems.end());
  if (!plan.change.Empty()) {
    if (const Status saved = parts.state.Remember(plan.change); !saved.ok()) {
      problems.push_back(MessageOf(Annotate(saved, "cannot save changed allocations")));
    }
  }
  settler->Settle(plan);
}

void Reconciler::Impl::ApplyChanges(const std::shared_ptr<const NodeState>& asked,
                                    const Changes& about, const ChangedAnswers& answers) {
  is_whole = false;
  offline = parts.machine.OfflineNow();
  const std::set<std::string> unasked = {answers.mute.begin(), answers.mute.end()};
  const ReconcilePlan plan =
      PlanChanges(*asked, *parts.state.Load(), answers.changed, parts.machine, unasked);
  problems = settler->TakeProblems();
  TakeOver(plan);
  std::vector<PlannedUpdate> updates;
  if (!parts.stands_aside()) {
    std::set<ContainerKey> keys = ContainersIn(answers);
    keys.insert(about.started.begin(), about.started.end());
    keys.merge(parts.live.DeferredKeys());
    updates = UpdatesOf(FindLive(parts.live, keys));
  }
  PostToIo([this, answers, about, stale = plan.stale, updates = std::move(updates)]() mutable {
    EndChanges(answers, about, stale);
    SendUpdates(std::move(updates));
  });
}

// A container that loses CPUs after this is deferred when its update has been answered.
std::vector<PlannedUpdate> Reconciler::Impl::UpdatesOf(
    const std::map<ContainerKey, LiveContainer>& live) {
  const auto state = parts.state.Load();
  std::vector<PlannedUpdate> updates = deferred.TakeFrom(
      PlanUpdates(*state, live, offline, parts.live.DeferredKeys()), *state, offline);
  for (const PlannedUpdate& update : updates) {
    parts.live.ClearDeferred(update.key, update.container_id);
  }
  return updates;
}

// After a stale run, changes are asked for again. Plugins that cannot report changes are asked for
// everything.
void Reconciler::Impl::EndChanges(const ChangedAnswers& answers, const Changes& done, bool stale) {
  if (stale) {
    changes.wanted = true;
    changes.started.insert(done.started.begin(), done.started.end());
  } else {
    questions.Know(answers);
  }
  for (const std::string& plugin : answers.mute) {
    next.Add(plugin);
  }
}

void Reconciler::Impl::SendUpdates(std::vector<PlannedUpdate> updates) {
  RunUpdates(parts.runtime, std::move(updates), options.concurrent_updates,
             [self = shared_from_this()](std::vector<UpdateResult> results) {
               self->PostToState([impl = self.get(), results = std::move(results)] {
                 impl->CommitApplied(results);
               });
             });
}

void Reconciler::Impl::CommitApplied(const std::vector<UpdateResult>& results) {
  for (const auto& [update, taken] : results) {
    parts.live.EndTelling(update.key, update.container_id, taken.ok());
    if (taken.ok()) {
      moved.Note(update);
    } else {
      deferred.NoteRefusal();
    }
  }
  const auto state = parts.state.Load();
  UpdateNotes notes = NoteResults(results, *state, parts.drift, parts.live, offline);
  problems.insert(problems.end(), notes.problems.begin(), notes.problems.end());
  if (!notes.updated.empty()) {
    history.NoteUpdated(notes.updated, *state);
  }
  // An empty change retries changes that the disk has rejected.
  if (const Status saved = parts.state.Remember(notes.change); !saved.ok()) {
    problems.push_back(MessageOf(Annotate(saved, "cannot save the containers' current values")));
  }
  if (!parts.stands_aside()) {
    const std::vector<std::string> ungrown = deferred.Grow(*state, offline);
    problems.insert(problems.end(), ungrown.begin(), ungrown.end());
  }
  const std::size_t untold = deferred.Settle(*parts.state.Load(), offline);
  history.Note({.whole = std::exchange(is_whole, false),
                .taken = notes.taken,
                .deferred = untold,
                .problems = std::exchange(problems, {})});
  PostToIo([this, untold] { EndRun(untold); });
}

void Reconciler::Impl::EndRun(std::size_t untold) {
  running = false;
  if (untold > 0) {
    TellSoon(options.deferral.gap);
  }
  if (!next.nobody() || changes.wanted) {
    StartRun();
  }
}

void Reconciler::Impl::TellSoon(std::chrono::milliseconds wait) {
  if (std::exchange(tells_soon, true)) {
    return;
  }
  After(wait, telling, [this] {
    tells_soon = false;
    PostToState([this] { LookAtDeferred(); });
  });
}

void Reconciler::Impl::LookAtDeferred() {
  const auto state = parts.state.Load();
  const CpuSet offline_now = parts.machine.OfflineNow();
  std::optional<PlannedUpdate> update;
  bool grows = false;
  if (!parts.stands_aside()) {
    deferred.Correct(*state, offline_now);
    update = deferred.Next(*state, offline_now);
    grows = deferred.MayGrow();
  }
  if (deferred.Settle(*state, offline_now) > 0) {
    PostToIo([this, grows, update = std::move(update)] {
      if (grows) {
        WantChanges();
      }
      Tell(update);
    });
  }
}

// Counts as a run, so that no other run updates the same container meanwhile.
void Reconciler::Impl::Tell(const std::optional<PlannedUpdate>& update) {
  const auto& [key, id, properties, grows] = update.value_or(PlannedUpdate());
  const auto found = properties.find(std::string(kCpusetCpus));
  const CpuSet cpus =
      found == properties.end() ? CpuSet() : CpuSet::Parse(found->second).value_or(CpuSet());
  if (running || !update.has_value() || !parts.live.BeginTelling(key, id, cpus)) {
    TellSoon(options.deferral.look);
    return;
  }
  running = true;
  SendUpdates({*update});
}

}  // namespace qrm::manager
