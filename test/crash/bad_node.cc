// Preloaded into a program, which it harms while files are there whose names variables give:
//   QRM_SLOW_DISK_WHILE   a sync of its disk takes 1.5 s
//   QRM_CLOCK_AHEAD_WHILE the clock is an hour ahead
//   QRM_HANDLES_USED_UP   all file handles up to its limit are taken, from then on; the directory
//                         NAME.done is made when they are
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr useconds_t kSlowSync = 1'500'000;
constexpr useconds_t kBetweenLooks = 50'000;
constexpr time_t kAhead = 3600;
/// Handles that others used for a moment only are taken then, too.
constexpr int kRounds = 20;
/// A program of a test opens fewer.
constexpr int kMostHandles = 1024;

bool IsThere(const char* variable) {
  const char* const flag = std::getenv(variable);
  return flag != nullptr && ::access(flag, F_OK) == 0;
}

template <typename Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

void Sync() {
  if (IsThere("QRM_SLOW_DISK_WHILE")) {
    ::usleep(kSlowSync);
  }
}

/// Leaves the handles that are open, and none of the others.
void UseUpHandles() {
  int highest = kMostHandles;
  while (highest > 0 && ::fcntl(highest, F_GETFD) < 0) {
    --highest;
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = static_cast<rlim_t>(highest) + 1;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  for (int round = 0; round < kRounds; ++round) {
    while (::open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
    }
    ::usleep(kBetweenLooks);
  }
}

/// Waits for the time to use up the handles.
const bool kWaits = [] {
  const char* const flag = std::getenv("QRM_HANDLES_USED_UP");
  if (flag != nullptr) {
    std::thread([done = std::string(flag) + ".done"] {
      while (!IsThere("QRM_HANDLES_USED_UP")) {
        ::usleep(kBetweenLooks);
      }
      UseUpHandles();
      ::mkdir(done.c_str(), 0700);  // takes no handle
    }).detach();
  }
  return true;
}();

}  // namespace

extern "C" {

int fsync(int fd) {
  static const auto real = Real<int (*)(int)>("fsync");
  Sync();
  return real(fd);
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): theirs are reserved.
int fdatasync(int fd) {
  static const auto real = Real<int (*)(int)>("fdatasync");
  Sync();
  return real(fd);
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): theirs are reserved.
int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto real = Real<int (*)(clockid_t, timespec*)>("clock_gettime");
  const int result = real(clock, time);
  if (clock == CLOCK_REALTIME && IsThere("QRM_CLOCK_AHEAD_WHILE")) {
    time->tv_sec += kAhead;
  }
  return result;
}

}  // extern "C"
