// Preloaded into a program: as long as a file is there, a sync of its disk takes 1.5 s.
//   QRM_SLOW_DISK_WHILE=/tmp/x LD_PRELOAD=libqrm-slow-disk.so qrmd ...
#include <cstdlib>

#include <dlfcn.h>
#include <unistd.h>

namespace {

constexpr useconds_t kSlowSync = 1'500'000;

bool Exists(const char* flag) {
  return flag != nullptr && ::access(flag, F_OK) == 0;
}

template <typename Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

void Sync() {
  static const char* const flag = std::getenv("QRM_SLOW_DISK_WHILE");
  if (Exists(flag)) {
    ::usleep(kSlowSync);
  }
}

}  // namespace

extern "C" {

int fsync(int fd) {
  static const auto real = Real<int (*)(int)>("fsync");
  Sync();
  return real(fd);
}

int fdatasync(int fd) {
  static const auto real = Real<int (*)(int)>("fdatasync");
  Sync();
  return real(fd);
}

}  // extern "C"
