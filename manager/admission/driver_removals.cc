// Sends removals, and delays the next call to a driver that failed.
#include "manager/admission/driver_removals.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "api/base/clock.h"
#include "api/base/log.h"
#include "manager/drivers/driver_choice.h"
#include "manager/registry/plugins.h"
#include "manager/state/state_loop.h"
#include "plugins/sdk/calls/compute_calls.h"

namespace qrm::manager {
namespace {

using sdk::ComputeRemoval;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{5};

template <typename Answers>
std::vector<Status> StatusesOf(const Answers& answers) {
  std::vector<Status> statuses;
  statuses.reserve(answers.size());
  for (const auto& answer : answers) {
    statuses.push_back(answer.status());
  }
  return statuses;
}

}  // namespace

std::vector<ComputeRemoval> DriverRemovals::Of(const checkpoint::PodRecord& pod) const {
  std::vector<ComputeRemoval> removals;
  for (const auto& [container, record] : pod.containers) {
    const std::string driver = DriverOf(record->allocations);
    if (!driver.empty() && plugins_.Find(driver).has_value()) {
      removals.push_back({.resource = driver,
                          .key = {pod.meta.uid, container},
                          .container_id = record->applied_to});
    }
  }
  return removals;
}

void DriverRemovals::Start(std::vector<ComputeRemoval> removals, std::function<void()> taken) {
  const std::string uid = removals.front().key.pod_uid;
  if (told_.contains(uid)) {
    return;
  }
  if (AnyLeftAlone(removals)) {
    stayed_[uid] = std::move(removals);
    return;
  }
  stayed_.erase(uid);
  const uint64_t round = ++round_;
  told_[uid] = {.round = round, .removals = removals, .taken = std::move(taken)};
  const Deadline deadline = DeadlineAfter(call_deadline_);
  FanOutThen<calls::Nothing>(
      removals.size(),
      [&](std::size_t index, AnswerCallback<calls::Nothing> answer) {
        plugins_.Ask<calls::ComputeRemove>(removals[index].resource, removals[index], deadline,
                                           std::move(answer));
      },
      [this, &state = state_, uid, round](const std::vector<StatusOr<calls::Nothing>>& answers) {
        state.Post([this, uid, round, statuses = StatusesOf(answers)] {
          OnAnswers(uid, round, statuses);
        });
      });
}

void DriverRemovals::OnAnswers(const std::string& uid, uint64_t round,
                               const std::vector<Status>& answers) {
  const auto found = told_.find(uid);
  if (found == told_.end() || found->second.round != round) {
    return;
  }
  const Told told = std::move(found->second);
  told_.erase(found);
  if (NoteAll(told.removals, answers)) {
    told.taken();
  } else {
    stayed_[uid] = told.removals;
  }
}

bool DriverRemovals::Finish() {
  bool any_taken = false;
  for (const auto& [uid, told] : std::exchange(told_, {})) {
    if (!AnyLeftAlone(told.removals) &&
        NoteAll(told.removals, StatusesOf(plugins_.AskForEach<calls::ComputeRemove>(
                                   told.removals, DeadlineAfter(call_deadline_))))) {
      any_taken = true;
      told.taken();
    } else {
      stayed_[uid] = told.removals;
    }
  }
  return any_taken;
}

bool DriverRemovals::Tell(const ComputeRemoval& removal) {
  if (!plugins_.Find(removal.resource).has_value()) {
    return true;  // the operator forgot it
  }
  if (IsLeftAlone(removal.resource)) {
    return false;
  }
  const auto answers =
      plugins_.AskForEach<calls::ComputeRemove>({removal}, DeadlineAfter(call_deadline_));
  return Note(removal, answers.front().status());
}

bool DriverRemovals::NoteAll(const Removals& removals, const std::vector<Status>& answers) {
  bool all = true;
  for (std::size_t index = 0; index < removals.size(); ++index) {
    all = Note(removals[index], answers[index]) && all;
  }
  return all;
}

bool DriverRemovals::Note(const ComputeRemoval& removal, const Status& ended) {
  if (ended.ok()) {
    unwilling_.erase(removal.resource);
    return true;
  }
  const bool is_news =
      unwilling_.insert_or_assign(removal.resource, steady_clock::now() + kPatience).second;
  if (is_news) {
    log::Warning("compute driver not notified of a removed container; retrying later",
                 {{"driver", removal.resource},
                  {"pod", removal.key.pod_uid},
                  {"container", removal.key.container},
                  {"error", MessageOf(ended)}});
  }
  return false;
}

bool DriverRemovals::AnyLeftAlone(const Removals& removals) const {
  return std::any_of(removals.begin(), removals.end(),
                     [this](const auto& removal) { return IsLeftAlone(removal.resource); });
}

bool DriverRemovals::IsLeftAlone(const std::string& driver) const {
  const auto found = unwilling_.find(driver);
  return found != unwilling_.end() && steady_clock::now() < found->second;
}

bool DriverRemovals::TakeDue() {
  return std::erase_if(stayed_, [this](const auto& pod) { return !AnyLeftAlone(pod.second); }) > 0;
}

}  // namespace qrm::manager
