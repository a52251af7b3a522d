// Preloaded into qrmd: ends it by SIGKILL at its n-th write or sync of a file, so that it dies
// inside commits, start-up and repair, without a trace of this in the program itself.
//   QRM_DIE_AT_WRITE=7 LD_PRELOAD=libqrm-die-at-write.so qrmd ...
#include <atomic>
#include <csignal>
#include <cstdlib>

#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

namespace {

/// Writes left to live for; none when the variable is missing.
std::atomic<long>& Left() {
  static std::atomic<long> left = [] {
    const char* text = std::getenv("QRM_DIE_AT_WRITE");
    return text == nullptr ? -1L : std::strtol(text, nullptr, 10);
  }();
  return left;
}

void Count() {
  if (Left().load() >= 0 && Left().fetch_sub(1) == 0) {
    ::kill(::getpid(), SIGKILL);
  }
}

template <typename Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): theirs are reserved.
int fdatasync(int fd) {
  static const auto real = Real<int (*)(int)>("fdatasync");
  Count();
  const int result = real(fd);
  Count();
  return result;
}

int fsync(int fd) {
  static const auto real = Real<int (*)(int)>("fsync");
  Count();
  const int result = real(fd);
  Count();
  return result;
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): theirs are reserved.
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  static const auto real = Real<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  Count();
  return real(fd, data, size, offset);
}

}  // extern "C"
