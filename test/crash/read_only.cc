// Preloaded into a program: its disk is read-only as long as a file is there, as after an error of
// the file system. A mount cannot be made so while the program has files open to write.
//   QRM_READ_ONLY_WHILE=/tmp/x LD_PRELOAD=libqrm-read-only.so qrmd ...
#include <cerrno>
#include <cstdlib>

#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

namespace {

bool IsReadOnly() {
  static const char* const flag = std::getenv("QRM_READ_ONLY_WHILE");
  const int before = errno;
  const bool read_only = flag != nullptr && ::access(flag, F_OK) == 0;
  errno = read_only ? EROFS : before;
  return read_only;
}

template <typename Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): theirs are reserved.
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  static const auto real = Real<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return IsReadOnly() ? -1 : real(fd, data, size, offset);
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): theirs are reserved.
int ftruncate64(int fd, off64_t size) {
  static const auto real = Real<int (*)(int, off64_t)>("ftruncate64");
  return IsReadOnly() ? -1 : real(fd, size);
}

}  // extern "C"
