// A process whose file handles are used up.
#pragma once

#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace qrm::test {

/// Takes all file handles of this process while it lives.
class UsedUpHandles {
 public:
  UsedUpHandles() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const rlimit few{.rlim_cur = static_cast<rlim_t>(next + 1), .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int fd = next; fd >= 0; fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
      handles_.push_back(fd);
    }
  }
  ~UsedUpHandles() {
    ::setrlimit(RLIMIT_NOFILE, &before_);
    for (const int fd : handles_) {
      ::close(fd);
    }
  }
  UsedUpHandles(const UsedUpHandles&) = delete;
  UsedUpHandles& operator=(const UsedUpHandles&) = delete;

 private:
  rlimit before_{};
  std::vector<int> handles_;
};

}  // namespace qrm::test
