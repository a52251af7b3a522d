// Looks at each of the paths, and compares two clocks.
#include "manager/daemon/node_checks.h"

#include <cerrno>
#include <chrono>
#include <deque>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "api/base/cgroup.h"
#include "api/base/file_descriptor.h"
#include "manager/runtime/cgroup_cpusets.h"
#include "manager/runtime/live_containers.h"

namespace qrm::manager {
namespace {

/// Enough that not all of them have just ended.
constexpr std::size_t kContainersLookedAt = 8;
/// More than all listeners keep back: these are free for moments.
constexpr std::size_t kFewHandles = 32;
/// Clocks that are set right by small steps are not worth an event.
constexpr std::chrono::seconds kSmallStep{2};
/// So long a jump is a reason to be degraded.
constexpr std::chrono::minutes kJumpIsNews{1};

std::string Words(int error) {
  return std::generic_category().message(error);
}

/// EMFILE or ENFILE when there are fewer free handles than kFewHandles, else 0.
int HandlesError() {
  std::deque<FileDescriptor> probes;
  while (probes.size() < kFewHandles) {
    const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      return errno == EMFILE || errno == ENFILE ? errno : 0;
    }
    probes.emplace_back(fd);
  }
  return 0;
}

std::string HandlesProblem() {
  const int error = HandlesError();
  if (error == 0) {
    return {};
  }
  return fmt::format(
      "file handles are used up ({}): qrmd answers probes and qrmctl with handles that it keeps "
      "back, and little else; {}, and restart qrmd",
      Words(error),
      error == EMFILE ? "raise LimitNOFILE of qrmd's unit, or the container's limit"
                      : "raise fs.file-max");
}

/// Why qrmd cannot write the cpuset of the cgroup at `directory`; empty: it can.
std::string WriteProblem(const std::string& directory, const char* file) {
  const std::string path = directory + file;
  if (::access(path.c_str(), W_OK) == 0 || errno == ENOENT) {
    return {};
  }
  return fmt::format(
      "cpusets cannot be written to {}: {}; mount cgroup-root writable, or set write-cpusets: "
      "false: shared containers leave new exclusive CPUs late",
      path, Words(errno));
}

}  // namespace

NodeChecks::NodeChecks(Paths paths, const LiveContainers& live)
    : paths_(std::move(paths)), live_(live) {}

// A container may have ended since it was reported: only the second look without any cgroup counts.
std::string NodeChecks::CgroupProblem() {
  if (paths_.cgroup_root.empty()) {
    return {};
  }
  const auto hierarchy = FindCgroupHierarchy(paths_.cgroup_root, "cpuset", "cpuset");
  if (!hierarchy.ok()) {
    return fmt::format(
        "cpusets of containers are not read, so that qrmd sees no drift: {}; or set cgroup-root to "
        "where it is mounted",
        MessageOf(hierarchy.status()));
  }
  const CgroupReader cgroups(paths_.cgroup_root);
  std::string missing;
  for (const auto& [key, container] : live_.After({}, kContainersLookedAt)) {
    if (!container.started || container.cgroups_path.empty()) {
      continue;
    }
    const auto cpuset = cgroups.ReadByPath(container.cgroups_path);
    if (cpuset.ok()) {
      found_none_ = false;
      return paths_.writes_cpusets ? WriteProblem(cpuset->path, "/cpuset.cpus") : std::string();
    }
    missing = fmt::format("container {} of pod {}: {}", key.container, key.pod_uid,
                          MessageOf(cpuset.status()));
  }
  if (!missing.empty() && std::exchange(found_none_, true)) {
    return fmt::format(
        "cpusets of containers are not read, so that qrmd sees no drift: cgroup-root {} has no "
        "cgroup of a running container, such as {}; set cgroup-root to where the node's cgroups "
        "are mounted",
        paths_.cgroup_root, missing);
  }
  found_none_ = !missing.empty();
  return missing.empty() && paths_.writes_cpusets ? WriteProblem(hierarchy->root, "")
                                                  : std::string();
}

std::string NodeChecks::KubeletProblem() const {
  struct stat found{};
  if (paths_.kubelet_state_dir.empty() || ::stat(paths_.kubelet_state_dir.c_str(), &found) == 0) {
    return {};
  }
  return fmt::format(
      "qrmd cannot see whether kubelet pins containers itself: kubelet-state-dir {}: {}; set it to "
      "kubelet's --root-dir, or to \"\" on a node without kubelet",
      paths_.kubelet_state_dir, Words(errno));
}

NodeChecks::Clocks NodeChecks::Clocks::Now() {
  return {std::chrono::system_clock::now(), std::chrono::steady_clock::now()};
}

// The steady clock stands still while the machine sleeps, which is a jump, too.
std::string NodeChecks::ClockProblem(const Clocks& now) {
  const std::chrono::duration<double> jump =
      (now.wall - latest_.wall) - (now.steady - latest_.steady);
  if (std::chrono::abs(jump) >= kSmallStep) {
    jumped_at_ = now.steady;
    jump_ = fmt::format(
        "the clock jumped by {:+.0f} s: times of events and log lines before and after that do not "
        "compare; check the node's time service",
        jump.count());
  }
  latest_ = now;
  return now.steady - jumped_at_ < kJumpIsNews ? jump_ : std::string();
}

// Without handles, files cannot be read that are there.
void NodeChecks::Look(const Clocks& now) {
  std::vector<std::string> found = {ClockProblem(now), HandlesProblem()};
  if (found.back().empty()) {
    found.push_back(CgroupProblem());
    found.push_back(KubeletProblem());
  }
  std::erase(found, std::string());
  const MutexLock lock(mutex_);
  problems_ = std::move(found);
}

std::vector<std::string> NodeChecks::problems() const {
  const MutexLock lock(mutex_);
  return problems_;
}

}  // namespace qrm::manager
