// Moves threads until all are in the group.
#include "plugins/rdt/thread_mover.h"

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include <sys/types.h>

#include <fmt/core.h>

#include "plugins/kernel/container_threads.h"

namespace qrm::rdt {
namespace {

/// How a pass finds the threads that are not in the group.
enum class Check {
  kGroupFile,    ///< one read for all threads, of the file that was written
  kThreadFiles,  ///< each thread's file
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

}  // namespace

std::string NameOfGroup(const std::string& group) {
  return group.empty() ? "the root group" : fmt::format("group {}", group);
}

Status MoveAll(const Resctrl& resctrl, const std::string& directory, const std::string& group) {
  const auto pass = [&](const std::vector<pid_t>& threads, int clean) -> StatusOr<std::size_t> {
    const Check check = clean == 0 ? Check::kGroupFile : Check::kThreadFiles;
    QRM_ASSIGN_OR_RETURN(const std::vector<pid_t> missing,
                         FindMissing(resctrl, threads, group, check));
    if (!missing.empty()) {
      QRM_RETURN_IF_ERROR(resctrl.Move(missing, group));
    }
    return missing.size();
  };
  return kernel::RepairAllThreads(
      directory, fmt::format("move all threads of {} to {}", directory, NameOfGroup(group)), pass);
}

StatusOr<std::string> FindElsewhere(const Resctrl& resctrl, const std::string& directory,
                                    const std::string& group) {
  QRM_ASSIGN_OR_RETURN(const std::vector<pid_t> threads, kernel::ThreadsBelow(directory));
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
