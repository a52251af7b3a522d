// Moves threads until none is missing.
#include "plugins/rdt/thread_mover.h"

#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "plugins/rdt/container_threads.h"

namespace qrm::rdt {
namespace {

constexpr int kPasses = 10;  // until it is frozen, and as many then
constexpr int kCleanPasses = 2;
constexpr auto kPause = std::chrono::milliseconds(2);  // longer than a fork takes

/// How a pass tells which threads are missing.
enum class Check {
  kGroupFile,    ///< one read for all; it is the file that was written
  kThreadFiles,  ///< each thread's own
};

StatusOr<std::vector<pid_t>> FindMissing(const Resctrl& resctrl, const std::vector<pid_t>& threads,
                                         const std::string& group, Check check) {
  std::vector<pid_t> missing;
  if (check == Check::kGroupFile) {
    QRM_ASSIGN_OR_RETURN(const std::set<pid_t> inside, resctrl.Threads(group));
    for (const pid_t thread : threads) {
      if (!inside.contains(thread)) {
        missing.push_back(thread);
      }
    }
    return missing;
  }
  for (const pid_t thread : threads) {
    QRM_ASSIGN_OR_RETURN(const std::optional<std::string> found, resctrl.GroupOf(thread));
    if (found.has_value() && *found != group) {
      missing.push_back(thread);
    }
  }
  return missing;
}

/// Passes until `kCleanPasses` of them in a row found none missing, the last of them in the
/// threads' own files; otherwise how many were missing last.
StatusOr<std::size_t> MoveInPasses(const Resctrl& resctrl, const std::string& directory,
                                   const std::string& group) {
  std::size_t last = 0;
  int clean = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    QRM_ASSIGN_OR_RETURN(const std::vector<pid_t> threads, ThreadsBelow(directory));
    const Check check = clean == 0 ? Check::kGroupFile : Check::kThreadFiles;
    QRM_ASSIGN_OR_RETURN(const std::vector<pid_t> missing,
                         FindMissing(resctrl, threads, group, check));
    last = missing.size();
    if (missing.empty()) {
      if (++clean == kCleanPasses) {
        return 0;
      }
      std::this_thread::sleep_for(kPause);
      continue;
    }
    clean = 0;
    QRM_RETURN_IF_ERROR(resctrl.Move(missing, group));
  }
  return std::max<std::size_t>(last, 1);
}

}  // namespace

std::string NameOfGroup(const std::string& group) {
  return group.empty() ? "the root group" : fmt::format("group {}", group);
}

Status MoveAll(const Resctrl& resctrl, const std::string& directory, const std::string& group) {
  QRM_ASSIGN_OR_RETURN(std::size_t missing, MoveInPasses(resctrl, directory, group));
  if (missing == 0) {
    return OkStatus();
  }
  const StatusOr<Frozen> frozen = Frozen::Freeze(directory);
  if (frozen.ok()) {
    QRM_ASSIGN_OR_RETURN(missing, MoveInPasses(resctrl, directory, group));
  }
  if (missing != 0) {
    return Errorf(
        StatusCode::kUnavailable,
        "cannot move all threads of {} to {}: {} were elsewhere after {} passes{}{}; it is "
        "tried again",
        directory, NameOfGroup(group), missing, kPasses,
        frozen.ok() ? "" : ", and: ", frozen.ok() ? "" : MessageOf(frozen.status()));
  }
  return OkStatus();
}

StatusOr<std::string> FindElsewhere(const Resctrl& resctrl, const std::string& directory,
                                    const std::string& group) {
  QRM_ASSIGN_OR_RETURN(const std::vector<pid_t> threads, ThreadsBelow(directory));
  std::map<std::string, std::size_t> elsewhere;
  for (const pid_t thread : threads) {
    QRM_ASSIGN_OR_RETURN(const std::optional<std::string> found, resctrl.GroupOf(thread));
    if (found.has_value() && *found != group) {
      ++elsewhere[*found];
    }
  }
  std::string where;
  for (const auto& [name, count] : elsewhere) {
    where += fmt::format("{}{} in {}", where.empty() ? "" : ", ", count, NameOfGroup(name));
  }
  return where.empty() ? ""
                       : fmt::format("{} threads, not all in {}: {}", threads.size(),
                                     NameOfGroup(group), where);
}

}  // namespace qrm::rdt
