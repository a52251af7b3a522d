// Reads and sets the attributes of each thread.
#include "plugins/kernel/thread_attributes.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/number.h"
#include "plugins/kernel/container_threads.h"
#include "plugins/kernel/kernel_files.h"

namespace qrm::kernel {
namespace {

struct Policy {
  const char* name;
  int number;
};
constexpr std::array<Policy, 5> kPolicies = {{{"other", SCHED_OTHER},
                                              {"batch", SCHED_BATCH},
                                              {"idle", SCHED_IDLE},
                                              {"fifo", SCHED_FIFO},
                                              {"rr", SCHED_RR}}};

Status FromErrno(const std::string& attribute, pid_t thread, int error) {
  if (error == ESRCH || error == ENOENT) {
    return Errorf(StatusCode::kNotFound, "thread {} is gone", thread);
  }
  const bool forbidden = error == EPERM || error == EACCES;
  return Errorf(
      forbidden ? StatusCode::kFailedPrecondition : StatusCode::kUnavailable,
      "cannot set {} of thread {}: {}; {}", attribute, thread,
      std::generic_category().message(error),
      forbidden ? "give this process the capabilities listed in docs/classes.md" : "it is retried");
}

std::string ScorePath(pid_t thread) {
  return fmt::format("/proc/{}/oom_score_adj", thread);
}

StatusOr<std::string> ReadNice(pid_t thread) {
  errno = 0;
  const int nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(thread));
  if (const int error = errno; error != 0) {
    return FromErrno(kNice, thread, error);
  }
  return std::to_string(nice);
}

StatusOr<std::string> ReadPolicy(pid_t thread) {
  const int number = ::sched_getscheduler(thread);
  sched_param parameters{};
  if (number < 0 || ::sched_getparam(thread, &parameters) != 0) {
    return FromErrno(kPolicy, thread, errno);
  }
  for (const Policy& policy : kPolicies) {
    if (policy.number == (number & ~SCHED_RESET_ON_FORK)) {
      return parameters.sched_priority == 0
                 ? std::string(policy.name)
                 : fmt::format("{} {}", policy.name, parameters.sched_priority);
    }
  }
  return fmt::format("policy {}", number);  // such as deadline
}

int WritePolicy(pid_t thread, const std::string& value) {
  const std::size_t space = value.find(' ');
  const sched_param parameters{
      .sched_priority =
          space == std::string::npos ? 0 : ParseNumber<int>(value.substr(space + 1)).value_or(0)};
  for (const Policy& policy : kPolicies) {
    if (value.substr(0, space) == policy.name) {
      return ::sched_setscheduler(thread, policy.number, &parameters) == 0 ? 0 : errno;
    }
  }
  return EINVAL;
}

int WriteScore(pid_t thread, const std::string& value) {
  SmallFile file(ScorePath(thread), O_WRONLY);
  if (file.error() == 0) {
    file.Write(value);
  }
  return file.error();
}

int WriteNice(pid_t thread, const std::string& value) {
  const int nice = ParseNumber<int>(value).value_or(0);
  return ::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), nice) == 0 ? 0 : errno;
}

bool HasCapability(int capability) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "CapEff:" && status >> word) {
      constexpr int kHex = 16;
      return (ParseNumber<uint64_t>(word, kHex).value_or(0) >> capability & 1U) != 0;
    }
  }
  return false;
}

/// Sets the attributes that differ; returns whether any did.
StatusOr<bool> Repair(pid_t thread, const ThreadValues& wanted) {
  bool repaired = false;
  for (const auto& [attribute, value] : wanted) {
    const StatusOr<std::string> found = ReadAttribute(attribute, thread);
    Status done = found.status();
    if (found.ok() && *found != value) {
      done = WriteAttribute(attribute, thread, value);
      repaired = true;
    }
    if (done.code() == StatusCode::kNotFound) {
      return false;  // it ended
    }
    QRM_RETURN_IF_ERROR(done);
  }
  return repaired;
}

}  // namespace

StatusOr<std::string> ReadAttribute(const std::string& attribute, pid_t thread) {
  if (attribute == kNice) {
    return ReadNice(thread);
  }
  if (attribute == kPolicy) {
    return ReadPolicy(thread);
  }
  std::string score = ReadLine(ScorePath(thread));
  if (score.empty()) {
    return FromErrno(attribute, thread, ESRCH);
  }
  return score;
}

Status WriteAttribute(const std::string& attribute, pid_t thread, const std::string& value) {
  const int error = attribute == kNice     ? WriteNice(thread, value)
                    : attribute == kPolicy ? WritePolicy(thread, value)
                                           : WriteScore(thread, value);
  return error == 0 ? OkStatus() : FromErrno(attribute, thread, error);
}

Status CheckMaySet(const std::string& attribute, const std::string& value) {
  // Every process may raise a score. Lowering it needs CAP_SYS_RESOURCE, down to the last value set
  // with it.
  const bool of_oom = attribute == kOomScoreAdj;
  const bool needed = !of_oom || value.starts_with('-');
  const int capability = of_oom ? CAP_SYS_RESOURCE : CAP_SYS_NICE;
  if (!needed || HasCapability(capability)) {
    return OkStatus();
  }
  return Errorf(StatusCode::kFailedPrecondition,
                "{} {} needs the capability {}, which this process lacks; add the capability, or "
                "remove the {}",
                attribute, value, of_oom ? "CAP_SYS_RESOURCE" : "CAP_SYS_NICE", attribute);
}

Status SetAllThreads(const std::string& directory, const ThreadValues& wanted) {
  if (wanted.empty()) {
    return OkStatus();
  }
  const auto pass = [&](const std::vector<pid_t>& threads, int) -> StatusOr<std::size_t> {
    std::size_t repaired = 0;
    for (const pid_t thread : threads) {
      QRM_ASSIGN_OR_RETURN(const bool differed, Repair(thread, wanted));
      repaired += differed ? 1 : 0;
    }
    return repaired;
  };
  return RepairAllThreads(directory, "set all threads of " + directory, pass);
}

StatusOr<std::string> FindOtherValues(const std::string& directory, const ThreadValues& wanted) {
  if (wanted.empty()) {
    return std::string();
  }
  QRM_ASSIGN_OR_RETURN(const std::vector<pid_t> threads, ThreadsBelow(directory));
  std::map<std::string, std::size_t> others;
  for (const pid_t thread : threads) {
    for (const auto& [attribute, value] : wanted) {
      const StatusOr<std::string> found = ReadAttribute(attribute, thread);
      if (found.ok() && *found != value) {
        ++others[fmt::format("{} {}, not {}", attribute, *found, value)];
      }
    }
  }
  std::string sentence;
  for (const auto& [what, count] : others) {
    sentence += fmt::format("{}{} of {} threads have {}", sentence.empty() ? "" : "; ", count,
                            threads.size(), what);
  }
  return sentence;
}

}  // namespace qrm::kernel
