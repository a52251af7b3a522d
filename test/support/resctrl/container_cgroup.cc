// Makes cgroups and processes in them.
#include "test/support/resctrl/container_cgroup.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/cgroup.h"
#include "api/base/check.h"
#include "api/base/errorf.h"
#include "plugins/kernel/container_threads.h"

namespace qrm::test {

std::string ContainerCgroup::NextPath() {
  static std::atomic<int> number = 0;
  return fmt::format("/qrm-test-{}-{}", ::getpid(), ++number);
}

StatusOr<std::unique_ptr<ContainerCgroup>> ContainerCgroup::Create(const std::string& path) {
  QRM_ASSIGN_OR_RETURN(const CgroupHierarchy hierarchy,
                       FindCgroupHierarchy("/sys/fs/cgroup", "freezer", "memory"));
  const std::string directory = hierarchy.root + path;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return Errorf(StatusCode::kFailedPrecondition, "cannot make cgroup {}: {}; run as root",
                  directory, error.message());
  }
  return std::unique_ptr<ContainerCgroup>(new ContainerCgroup(directory, path));
}

std::vector<pid_t> ContainerCgroup::Threads() const {
  return kernel::ThreadsBelow(directory_).value_or(std::vector<pid_t>());
}

ContainerCgroup::~ContainerCgroup() {
  for (std::vector<pid_t> left = Threads(); !left.empty(); left = Threads()) {
    for (const pid_t thread : left) {
      ::kill(thread, SIGKILL);
    }
    for (const pid_t child : children_) {
      ::waitpid(child, nullptr, WNOHANG);
    }
  }
  while (::rmdir(directory_.c_str()) != 0 && errno == EBUSY) {
  }
  if (path_.rfind('/') != 0) {
    ::rmdir(
        directory_.substr(0, directory_.rfind('/')).c_str());  // fails while another test uses it
  }
}

pid_t ContainerCgroup::Run(const std::function<void()>& work) {
  const std::string procs = directory_ + "/cgroup.procs";
  int inside[2];
  QRM_CHECK(::pipe(inside) == 0);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  QRM_CHECK(child >= 0);
  children_.push_back(child);
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a killed test leaves no process behind
    if (::getppid() != parent) {
      ::_exit(0);
    }
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
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
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
