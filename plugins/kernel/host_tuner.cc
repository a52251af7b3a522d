// Compares, journals and writes, on a separate thread.
#include "plugins/kernel/host_tuner.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/log.h"
#include "plugins/kernel/interrupts.h"
#include "plugins/kernel/tunable_machine.h"

namespace qrm::kernel {
namespace {

/// The single owner of all values in the journal.
constexpr char kOwner[] = "classes";
/// How long until values are checked again, and failed writes repeated.
constexpr std::chrono::seconds kCheckEvery{30};
/// The longest time until a value that the machine rejected is tried again.
constexpr std::chrono::seconds kLongestPause{1800};

/// The file at `path`, if the plan sets it.
const TunedFile* Find(const Resolved& resolved, const std::string& path) {
  const auto file = std::ranges::find_if(
      resolved.files, [&](const TunedFile& of) { return of.claim.path == path; });
  return file == resolved.files.end() ? nullptr : &*file;
}

/// Whether the rejected `claim` matters: an interrupt that cannot be moved is harmless if other
/// CPUs handle it.
bool Matters(const Claim& claim, const KernelFiles& files) {
  const StatusOr<CpuSet> quiet = CpuSet::Parse(claim.value);
  return claim.form != ClaimForm::kCpuList || !quiet.ok() || IsHandledBy(*quiet, claim.path, files);
}

TuningProblem OfAll(const TuningPlan& plan, const Status& failure) {
  TuningProblem problem{.profiles = {}, .text = MessageOf(failure)};
  for (const auto& [name, of] : plan.profiles) {
    problem.profiles.insert(name);
  }
  return problem;
}

}  // namespace

void HostTuner::Tune(const TuningPlan& plan) {
  const auto now = clock_.Steady();
  if (asked_at_.has_value() && plan == asked_ && now - *asked_at_ < kCheckEvery) {
    return;
  }
  asked_ = plan;
  asked_at_ = now;
  {
    const MutexLock lock(mutex_);
    next_ = plan;
  }
  thread_.Post([this] { Work(); });
}

void HostTuner::Finish() {
  thread_.Run([] {});
}

void HostTuner::Work() {
  std::optional<TuningPlan> plan;
  {
    const MutexLock lock(mutex_);
    plan = std::exchange(next_, std::nullopt);
  }
  if (plan.has_value()) {  // else a later plan was already set
    Report(Apply(*plan));
  }
}

std::vector<TuningProblem> HostTuner::Apply(const TuningPlan& plan) {
  std::error_code error;
  if (plan.profiles.empty() && knobs_ == nullptr && !std::filesystem::exists(journal_, error)) {
    return {};
  }
  if (const Status opened = OpenKnobs(); !opened.ok()) {
    return {OfAll(plan, opened)};
  }
  Resolved resolved = Resolve(plan, ReadTunableMachine(files_, WantsQuiet(plan)));
  const auto now = clock_.Steady();
  const std::vector<Claim> claims = Unrefused(resolved, now);
  if (const Status released = knobs_->ReleaseAllBut(kOwner, claims); !released.ok()) {
    resolved.problems.push_back(OfAll(plan, released));
  }
  const auto refusals =
      knobs_->Holds(kOwner, claims) ? std::vector<Refusal>() : knobs_->Hold(kOwner, claims);
  if (!refusals.ok()) {
    resolved.problems.push_back(OfAll(plan, refusals.status()));
    return std::move(resolved.problems);
  }
  NoteRefusals(*refusals, resolved, now);
  for (const auto& [path, refused] : refused_) {
    const TunedFile& file = *Find(resolved, path);
    if (Matters(file.claim, files_)) {
      resolved.problems.push_back({.profiles = file.profiles, .text = refused.reason});
    }
  }
  return std::move(resolved.problems);
}

/// The values to set, without rejected values that wait for their next try. Forgets rejections of
/// values that are no longer in the plan.
std::vector<Claim> HostTuner::Unrefused(const Resolved& resolved, TimePoint now) {
  std::erase_if(refused_, [&](const auto& entry) {
    const TunedFile* const file = Find(resolved, entry.first);
    return file == nullptr || file->claim.value != entry.second.value;
  });
  std::vector<Claim> claims;
  claims.reserve(resolved.files.size());
  for (const TunedFile& file : resolved.files) {
    const auto refused = refused_.find(file.claim.path);
    if (refused == refused_.end() || now >= refused->second.next) {
      claims.push_back(file.claim);
    }
  }
  return claims;
}

/// Values tried at `now` that are not in `refusals` have been set.
void HostTuner::NoteRefusals(const std::vector<Refusal>& refusals, const Resolved& resolved,
                             TimePoint now) {
  std::map<std::string, Refused> before = std::exchange(refused_, {});
  for (const Refusal& refusal : refusals) {
    const std::chrono::seconds last = before[refusal.path].pause;
    const std::chrono::seconds pause = std::clamp(2 * last, kCheckEvery, kLongestPause);
    refused_[refusal.path] = {.value = Find(resolved, refusal.path)->claim.value,
                              .reason = refusal.reason,
                              .pause = pause,
                              .next = now + pause};
  }
  std::erase_if(before, [now](const auto& entry) { return now >= entry.second.next; });
  refused_.merge(before);
}

Status HostTuner::OpenKnobs() {
  if (knobs_ == nullptr) {
    QRM_ASSIGN_OR_RETURN(knobs_, KernelValues::Open(files_, journal_));
    RepeatBans(files_, knobs_->records());
  }
  return OkStatus();
}

void HostTuner::Report(std::vector<TuningProblem> problems) {
  const MutexLock lock(mutex_);
  for (const TuningProblem& problem : problems) {
    if (std::ranges::find(problems_, problem) == problems_.end()) {
      log::Warning("CPUs are not tuned by their class",
                   {{"classes", fmt::format("{}", fmt::join(problem.profiles, ", "))},
                    {"error", problem.text}});
    }
  }
  problems_ = std::move(problems);
}

std::string HostTuner::ProblemOf(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto problem = std::ranges::find_if(
      problems_, [&](const TuningProblem& of) { return of.profiles.contains(name); });
  return problem == problems_.end() ? "" : problem->text;
}

}  // namespace qrm::kernel
