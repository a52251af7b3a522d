// Compares the classes in the kernel with the wanted ones, and corrects them.
#include "manager/classes/class_worker.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/log.h"

namespace qrm::manager {
namespace {

/// What `call` returns; a provider's exception as an error.
template <typename Call>
auto Guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& error) {
    return Errorf(StatusCode::kInternal, "the type's code threw an exception: {}; report it",
                  error.what());
  }
}

std::string NameOf(const ContainerKey& key) {
  return key.container.empty() ? "pod " + key.pod_uid
                               : fmt::format("container {} of pod {}", key.container, key.pod_uid);
}

}  // namespace

void ClassWorker::Refresh(const std::set<std::string>& in_use) {
  const Status done = Guarded([&] { return provider_.Refresh(in_use); });
  Report({}, done.ok() ? "" : MessageOf(done));
}

Status ClassWorker::Give(const WantedClass& wanted) {
  const ContainerKey& key = wanted.target.key;
  const auto held = held_.find(key);
  const bool same = held != held_.end() && held->second.target == wanted.target;
  const std::string from = same ? held->second.name : wanted.lost;
  Status given = Guarded([&] { return provider_.Apply(wanted.target, from, wanted.name); });
  if (given.code() == StatusCode::kNotFound) {
    return OkStatus();  // the next round forgets it
  }
  if (given.ok()) {
    held_[key] = wanted;
    Report(key, "");
  }
  return given;
}

void ClassWorker::Round(const WantedClasses& all) {
  ReleaseGone(all);
  ForgetProblems(all);
  for (const auto& [key, wanted] : all) {
    if (!wanted.by.empty()) {
      continue;
    }
    const Status kept = Keep(key, wanted);
    if (!wanted.lost.empty()) {
      NoteLeft(key, wanted.lost, kept);
    }
    Report(key, kept.ok() || !wanted.lost.empty()
                    ? LossOf(key, wanted, kept)
                    : fmt::format("{} does not have all values of {} class {}: {}", NameOf(key),
                                  type_, wanted.name, MessageOf(kept)));
    if (kept.code() == StatusCode::kDeadlineExceeded) {
      break;  // the others would time out, too, while starting containers wait for this thread
    }
  }
  using Readings = std::vector<sdk::ClassReading>;
  auto readings = Guarded([&] { return StatusOr<Readings>(provider_.Readings()); });
  const MutexLock guard(mutex_);
  readings_ = std::move(readings).value_or(Readings());
}

StatusOr<std::string> ClassWorker::ReadBack(const WantedClass& wanted) {
  return Guarded([&] { return provider_.ReadBack(wanted.target, wanted.name); });
}

Status ClassWorker::Keep(const ContainerKey& key, const WantedClass& wanted) {
  const auto held = held_.find(key);
  const bool known = held != held_.end() && held->second == wanted;
  if (!wanted.lost.empty() && !known) {
    return Give(wanted);  // a provider does not see the values of a class that it does not know
  }
  StatusOr<std::string> drift = ReadBack(wanted);
  if (drift.status().code() == StatusCode::kNotFound) {
    return OkStatus();
  }
  QRM_RETURN_IF_ERROR(drift.status());
  if (drift->empty()) {
    if (!known) {
      held_[key] = wanted;
    }
    return OkStatus();
  }
  if (known) {
    log::Info(
        "class drift corrected",
        {{"container", NameOf(key)}, {"type", type_}, {"class", wanted.name}, {"found", *drift}});
  }
  QRM_RETURN_IF_ERROR(Give(wanted));
  drift = ReadBack(wanted);
  if (drift.ok() && !drift->empty()) {
    return Errorf(StatusCode::kUnavailable, "{}; it is tried again", *drift);
  }
  if (known) {
    const MutexLock guard(mutex_);
    ++repairs_;
  }
  return OkStatus();
}

void ClassWorker::ReleaseGone(const WantedClasses& all) {
  for (auto held = held_.begin(); held != held_.end();) {
    const auto wanted = all.find(held->first);
    if (wanted != all.end() && wanted->second.target == held->second.target) {
      ++held;
      continue;
    }
    const Status released = Guarded([&] {
      provider_.Release(held->second.target);
      return OkStatus();
    });
    if (!released.ok()) {
      log::Warning("class not released", {{"type", type_}, {"error", MessageOf(released)}});
    }
    held = held_.erase(held);
  }
}

void ClassWorker::ForgetProblems(const WantedClasses& all) {
  const MutexLock guard(mutex_);
  std::erase_if(problems_, [&](const auto& problem) {
    return problem.first != ContainerKey() && !all.contains(problem.first);
  });
  std::erase_if(left_, [&](const auto& left) {
    const auto wanted = all.find(left.first);
    return wanted == all.end() || wanted->second.lost.empty();
  });
}

void ClassWorker::NoteLeft(const ContainerKey& key, const std::string& lost, const Status& reset) {
  const MutexLock guard(mutex_);
  if (reset.ok()) {
    left_.erase(key);
  } else {
    left_[key] = {.name = lost, .why = MessageOf(reset)};
  }
}

std::string ClassWorker::LossOf(const ContainerKey& key, const WantedClass& wanted,
                                const Status& reset) const {
  if (wanted.lost.empty()) {
    return {};
  }
  return reset.ok() ? fmt::format(
                          "{} runs without {} class {}, which it has on record: the class "
                          "does not exist any more; define it again, or recreate the pod",
                          NameOf(key), type_, wanted.lost)
                    : fmt::format(
                          "{} keeps values of {} class {}, which does not exist any more: "
                          "{}",
                          NameOf(key), type_, wanted.lost, MessageOf(reset));
}

void ClassWorker::Report(const ContainerKey& key, const std::string& problem) {
  {
    const MutexLock guard(mutex_);
    const auto before = problems_.find(key);
    if (problem.empty() && before != problems_.end()) {
      problems_.erase(before);
    }
    if (problem.empty() || (before != problems_.end() && before->second == problem)) {
      return;
    }
    problems_[key] = problem;
  }
  log::Warning("class not fully applied", {{"type", type_}, {"error", problem}});
  if (key != ContainerKey()) {
    note_({.type = "class", .message = problem, .key = key});
  }
}

std::string ClassWorker::ProblemOf(const ContainerKey& key) const {
  const MutexLock guard(mutex_);
  const auto found = problems_.find(key);
  return found == problems_.end() ? std::string() : found->second;
}

ClassWork ClassWorker::GetWork() const {
  const MutexLock guard(mutex_);
  ClassWork work{.repairs = repairs_, .readings = readings_, .left = left_};
  for (const auto& [key, problem] : problems_) {
    work.problems.push_back(problem);
  }
  return work;
}

}  // namespace qrm::manager
