// Dispatches steps, ends faults in time, and looks at everything every few steps.
#include "test/model/player.h"

#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "test/model/model_machine.h"
#include "test/support/await.h"

namespace qrm::test {
namespace {

constexpr int kStepsPerLook = 25;
constexpr int kReconcilesToAgree = 2;
constexpr std::size_t kTraced = 200;

/// Counts down a fault that lasts `steps` more steps; true after the last.
bool RunsOut(int& steps) {
  if (steps == 0) {
    return false;
  }
  --steps;
  return steps == 0;
}

}  // namespace

Player::Player()
    : kubelet_(dir_ / "pods.sock"),
      runtime_(dir_.path()),
      node_(dir_ / "node", runtime_, dir_ / "pods.sock") {
  books_.SetOnline(AllCpus(), {});
}

Status Player::Start() {
  trace_.push_back("start");
  return node_.Start();
}

Status Player::Play(const Step& step) {
  trace_.push_back(fmt::format("{} {}", ++steps_, ToString(step)));
  if (trace_.size() > kTraced) {
    trace_.pop_front();
  }
  ++counts_[std::string(ToString(step.kind))];
  QRM_RETURN_IF_ERROR(Perform(step));
  return AfterStep();
}

Status Player::Perform(const Step& step) {
  using Handler = Status (Player::*)(Random&);
  constexpr std::array<Handler, kStepKinds> kHandlers = {
      &Player::Admit,          &Player::Remove,
      &Player::FinishPod,      &Player::Restart,
      &Player::Recreate,       &Player::Resize,
      &Player::TellLate,       &Player::RuntimeRestarted,
      &Player::LeftOut,        &Player::Observer,
      &Player::WrittenAgain,   &Player::Kill,
      &Player::KillSoon,       &Player::DieAtWrite,
      &Player::ReadOnly,       &Player::UpdatesFail,
      &Player::PluginLost,     &Player::PluginEmptied,
      &Player::PluginReplaced, &Player::PluginMoved,
      &Player::PluginOff,      &Player::Import,
      &Player::Cpus,           &Player::Drain};
  Random random(step.word);
  return (this->*kHandlers[static_cast<std::size_t>(step.kind)])(random);
}

Status Player::AfterStep() {
  QRM_RETURN_IF_ERROR(books_.CheckBoxes(runtime_.Boxes()));
  QRM_RETURN_IF_ERROR(EndFaults());
  if (settled_ && CanSettle() && AllPluginsLive()) {
    QRM_RETURN_IF_ERROR(books_.CheckApart(runtime_.Boxes()));
  }
  const bool looks = steps_ % kStepsPerLook == 0 || !settled_;
  return looks && CanSettle() ? Settle() : OkStatus();
}

Status Player::EndFaults() {
  if (away_for_ == 0 && !node_.Runs()) {
    if (!dying_) {
      return Errorf(StatusCode::kInternal, "qrmd ended by itself; its log is below");
    }
    Note("(qrmd died)");
    away_for_ = 1;
  }
  if (RunsOut(away_for_)) {
    QRM_RETURN_IF_ERROR(RestartDaemon());
  }
  if (RunsOut(observed_for_)) {
    QRM_RETURN_IF_ERROR(EndObserver());
  }
  if (RunsOut(read_only_for_)) {
    node_.SetReadOnly(false);
  }
  if (RunsOut(updates_fail_for_)) {
    runtime_.SetUpdates(ModelRuntime::Updates::kWork);
  }
  std::vector<std::string> due;
  for (auto& [resource, steps] : lost_) {
    if (--steps <= 0 && away_for_ == 0 && !dying_) {
      due.push_back(resource);
    }
  }
  for (const std::string& resource : due) {
    Note(fmt::format("({} is back)", resource));
    QRM_RETURN_IF_ERROR(StartPlugin(resource));
  }
  for (auto& [resource, off] : off_) {
    if (--off.steps <= 0) {
      Note(fmt::format("({} is on again)", resource));
      node_.Kill();
      node_.SetHome(resource, off.home);
      off_.erase(resource);
      return RestartDaemon();
    }
  }
  return OkStatus();
}

// Ends the present faults, so that the checks do not find their effects.
Status Player::BringBack() {
  if (read_only_for_ > 0) {
    read_only_for_ = 0;
    node_.SetReadOnly(false);
  }
  updates_fail_for_ = 0;
  runtime_.SetUpdates(ModelRuntime::Updates::kWork);
  if (away_for_ > 0 || dying_ || !node_.Runs()) {
    node_.Kill();
    return RestartDaemon();
  }
  return std::exchange(observed_for_, 0) > 0 ? EndObserver() : OkStatus();
}

Status Player::RestartDaemon() {
  killer_.reset();
  dying_ = false;
  away_for_ = 0;
  observed_for_ = 0;
  settled_ = false;
  runtime_.OpenNri();
  QRM_RETURN_IF_ERROR(node_.Start());
  books_.NoteRestart(std::chrono::steady_clock::now());
  // The first reconcile finds plugins' allocations of an admission that was cut short, the second
  // finds them released.
  QRM_RETURN_IF_ERROR(node_.daemon().Reconcile());
  return node_.daemon().Reconcile();
}

Status Player::StartPlugin(const std::string& resource, ModelNode::Socket socket) {
  lost_.erase(resource);
  settled_ = false;
  QRM_RETURN_IF_ERROR(node_.StartPlugin(resource, socket));
  return node_.daemon().Reconcile();
}

Status Player::Finish() {
  trace_.push_back("finish");
  QRM_RETURN_IF_ERROR(BringBack());
  Random random(0);
  return Drain(random);
}

Status Player::LookOnce() {
  QRM_ASSIGN_OR_RETURN(const v1::ListPodsResponse records, node_.daemon().ListPods());
  const std::vector<Box> boxes = runtime_.Boxes();
  const Books::Look look{.records = records,
                         .boxes = boxes,
                         .now = std::chrono::steady_clock::now(),
                         .all_plugins_live = AllPluginsLive()};
  std::vector<Waiting> waiting;
  QRM_RETURN_IF_ERROR(books_.CheckRecords(look));
  QRM_RETURN_IF_ERROR(books_.CheckRequests(look, waiting));
  return CheckWaiting(waiting);
}

// A pod that asks for what they lack must be rejected.
Status Player::CheckWaiting(const std::vector<Waiting>& waiting) {
  for (const auto& [name, why, growth] : waiting) {
    QRM_ASSIGN_OR_RETURN(const v1::DryRunResponse answer, node_.daemon().DryRun(growth.Message()));
    ++counts_["(waits)"];
    if (answer.result() == "admitted") {
      return Errorf(StatusCode::kInternal,
                    "{} waits for {} CPUs ({}), and a pod that asks for them would be admitted",
                    name, growth.own_cpus(), why);
    }
  }
  return OkStatus();
}

Status Player::Settle(std::chrono::seconds limit) {
  Status held = LookOnce();
  const auto until = std::chrono::steady_clock::now() + limit;
  int reconciles = 0;
  while (!held.ok() &&
         (reconciles < kReconcilesToAgree || std::chrono::steady_clock::now() < until)) {
    QRM_RETURN_IF_ERROR(node_.daemon().Reconcile());
    held = LookOnce();
    ++reconciles;
  }
  settled_ = held.ok();
  ++counts_["(looks)"];
  counts_["(looks that took more than two reconciles)"] += reconciles > kReconcilesToAgree ? 1 : 0;
  return held;
}

std::string Player::Trace() const {
  std::string text;
  for (const std::string& line : trace_) {
    text += line + "\n";
  }
  return text;
}

std::string Player::Summary() const {
  std::string text;
  for (const auto& [what, count] : counts_) {
    text += fmt::format("  {:7} {}\n", count, what);
  }
  return text;
}

}  // namespace qrm::test
