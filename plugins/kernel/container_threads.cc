// Lists and freezes cgroups, v1 and v2.
#include "plugins/kernel/container_threads.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <absl/cleanup/cleanup.h>

#include "api/base/errorf.h"
#include "plugins/kernel/kernel_files.h"

namespace qrm::kernel {
namespace {

namespace fs = std::filesystem;

/// Adds the threads of `directory`, without descendants. Errors: kNotFound when it is gone,
/// kFailedPrecondition for threads outside this PID namespace.
Status AddThreads(const std::string& directory, std::vector<pid_t>& threads) {
  for (const char* const name : {"/cgroup.threads", "/tasks"}) {
    SmallFile file(directory + name, O_RDONLY);
    const std::string text = file.error() == 0 ? file.Read() : "";
    if (file.error() != 0) {
      continue;
    }
    std::istringstream words(text);
    for (pid_t thread = 0; words >> thread;) {
      if (thread == 0) {
        return Errorf(StatusCode::kFailedPrecondition,
                      "cannot list the threads of {}: they have no ids in qrmd's PID namespace; "
                      "set hostPID: true in qrmd's pod",
                      directory);
      }
      threads.push_back(thread);
    }
    return OkStatus();
  }
  return Errorf(StatusCode::kNotFound, "cannot list the threads of {}: the cgroup is gone",
                directory);
}

/// The freezer's files and values in v1 or v2.
struct Freezer {
  std::string file;
  std::string freeze;
  std::string thaw;
  std::string state_file;
  std::string frozen;  ///< a line of state_file
};

std::optional<Freezer> FreezerOf(const std::string& directory) {
  if (::access((directory + "/cgroup.freeze").c_str(), F_OK) == 0) {
    return Freezer{.file = directory + "/cgroup.freeze",
                   .freeze = "1",
                   .thaw = "0",
                   .state_file = directory + "/cgroup.events",
                   .frozen = "frozen 1"};
  }
  const std::string state = directory + "/freezer.state";
  if (::access(state.c_str(), F_OK) == 0) {
    return Freezer{.file = state,
                   .freeze = "FROZEN",
                   .thaw = "THAWED",
                   .state_file = state,
                   .frozen = "FROZEN"};
  }
  return std::nullopt;
}

constexpr int kPasses = 10;  // before freezing, and again while frozen
constexpr int kCleanPasses = 2;
constexpr auto kPassPause = std::chrono::milliseconds(2);  // longer than a fork takes

/// Runs passes until two in a row are clean, and returns 0; otherwise the number of threads that
/// the last pass with findings repaired.
StatusOr<std::size_t> RunPasses(const std::string& directory, const ThreadPass& pass) {
  std::size_t last = 0;
  int clean = 0;
  for (int count = 0; count < kPasses; ++count) {
    QRM_ASSIGN_OR_RETURN(const std::vector<pid_t> threads, ThreadsBelow(directory));
    QRM_ASSIGN_OR_RETURN(last, pass(threads, clean));
    if (last != 0) {
      clean = 0;
      continue;
    }
    if (++clean == kCleanPasses) {
      return 0;
    }
    std::this_thread::sleep_for(kPassPause);
  }
  return std::max<std::size_t>(last, 1);
}

int WriteTo(const std::string& path, const std::string& text) {
  SmallFile file(path, O_WRONLY);
  if (file.error() == 0) {
    file.Write(text);
  }
  return file.error();
}

/// Returns when nothing in the cgroup runs any more, so that no fork is in progress. Errors:
/// kUnavailable after a fifth of a second, kFailedPrecondition if it cannot be frozen.
Status Freeze(const std::string& directory, const std::optional<Freezer>& freezer) {
  constexpr auto kPatience =
      std::chrono::milliseconds(200);  // the container's probes wait meanwhile
  constexpr auto kPause = std::chrono::milliseconds(1);
  const auto cannot = [&](const char* why) {
    return Errorf(StatusCode::kFailedPrecondition, "cannot freeze {}: {}", directory, why);
  };
  if (!freezer.has_value()) {
    return cannot("it has no freezer");
  }
  if (const int error = WriteTo(freezer->file, freezer->freeze); error != 0) {
    return cannot(std::strerror(error));
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (ReadLine(freezer->state_file).find(freezer->frozen) == std::string::npos) {
    if (std::chrono::steady_clock::now() > deadline) {
      return Errorf(StatusCode::kUnavailable, "cannot freeze {}: its threads do not stop",
                    directory);
    }
    WriteTo(freezer->file, freezer->freeze);  // v1 retries only after another write
    std::this_thread::sleep_for(kPause);
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<pid_t>> ThreadsBelow(const std::string& directory) {
  std::vector<pid_t> threads;
  QRM_RETURN_IF_ERROR(AddThreads(directory, threads));
  std::error_code error;
  for (fs::recursive_directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (!at->is_directory(ignored)) {
      continue;
    }
    Status added = AddThreads(at->path(), threads);
    if (!added.ok() && added.code() != StatusCode::kNotFound) {
      return added;
    }
  }
  return threads;
}

Status RepairAllThreads(const std::string& directory, const std::string& action,
                        const ThreadPass& pass) {
  QRM_ASSIGN_OR_RETURN(std::size_t missed, RunPasses(directory, pass));
  if (missed == 0) {
    return OkStatus();
  }
  const std::optional<Freezer> freezer = FreezerOf(directory);
  const absl::Cleanup thaw = [&freezer] {
    if (freezer.has_value()) {
      WriteTo(freezer->file, freezer->thaw);
    }
  };
  const Status frozen = Freeze(directory, freezer);
  if (frozen.ok()) {
    QRM_ASSIGN_OR_RETURN(missed, RunPasses(directory, pass));
  }
  if (missed == 0) {
    return OkStatus();
  }
  return Errorf(StatusCode::kUnavailable,
                "cannot {}: {} were missed in {} passes{}{}; it is retried", action, missed,
                kPasses, frozen.ok() ? "" : ", and: ", frozen.ok() ? "" : MessageOf(frozen));
}

}  // namespace qrm::kernel
