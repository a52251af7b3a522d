// Makes cgroups and processes in them.
#include "test/support/resctrl/container_cgroup.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/cgroup.h"
#include "api/base/check.h"
#include "plugins/rdt/container_threads.h"

namespace qrm::test {

StatusOr<std::unique_ptr<ContainerCgroup>> ContainerCgroup::Create() {
  static std::atomic<int> number = 0;
  QRM_ASSIGN_OR_RETURN(const CgroupHierarchy hierarchy,
                       FindCgroupHierarchy("/sys/fs/cgroup", "freezer", "memory"));
  const std::string path = fmt::format("/qrm-test-{}-{}", ::getpid(), ++number);
  const std::string directory = hierarchy.root + path;
  constexpr mode_t kMode = 0755;
  if (::mkdir(directory.c_str(), kMode) != 0) {
    return Errorf(StatusCode::kFailedPrecondition, "cannot make cgroup {}: {}; run as root",
                  directory, std::strerror(errno));
  }
  return std::unique_ptr<ContainerCgroup>(new ContainerCgroup(directory, path));
}

std::vector<pid_t> ContainerCgroup::Threads() const {
  return rdt::ThreadsBelow(directory_).value_or(std::vector<pid_t>());
}

ContainerCgroup::~ContainerCgroup() {
  for (std::vector<pid_t> left = Threads(); !left.empty(); left = Threads()) {
    for (const pid_t thread : left) {
      ::kill(thread, SIGKILL);
    }
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
  while (::rmdir(directory_.c_str()) != 0 && errno == EBUSY) {
  }
}

pid_t ContainerCgroup::Run(const std::function<void()>& work) {
  const std::string procs = directory_ + "/cgroup.procs";
  int inside[2];
  QRM_CHECK(::pipe(inside) == 0);
  const pid_t child = ::fork();
  QRM_CHECK(child >= 0);
  if (child == 0) {
    const int file = ::open(procs.c_str(), O_WRONLY);
    const bool joined = ::write(file, "0", 1) == 1;
    static_cast<void>(!::write(inside[1], joined ? "y" : "n", 1));
    ::close_range(3, ~0U, 0);  // the test's file systems, which it would hold open
    work();
    ::_exit(0);
  }
  char answer = 'n';
  QRM_CHECK(::read(inside[0], &answer, 1) == 1 && answer == 'y');
  ::close(inside[0]);
  ::close(inside[1]);
  return child;
}

void Idle() {
  for (;;) {
    ::pause();
  }
}

void ForkStorm(int breeders) {
  constexpr useconds_t kPause = 1000;
  constexpr useconds_t kLife = 5000;
  for (int breeder = 0; breeder < breeders; ++breeder) {
    if (::fork() != 0) {
      continue;
    }
    for (;;) {
      if (::fork() == 0) {
        ::usleep(kLife);
        ::_exit(0);
      }
      ::usleep(kPause);
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
    }
  }
  Idle();
}

}  // namespace qrm::test
