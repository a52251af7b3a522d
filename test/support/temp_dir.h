// A private directory for one test, with a path short enough for sockets.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include <unistd.h>

#include "api/base/check.h"

namespace qrm::test {

/// Made empty in /tmp, removed with all its contents.
class TempDir {
 public:
  TempDir() : TempDir("/tmp") {}
  /// In memory where the machine has such a directory: for tests that sync thousands of times.
  static TempDir InMemory() {
    return TempDir(::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  /// The path of `name` in the directory.
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit TempDir(const std::string& parent) {
    std::string pattern = parent + "/qrm-test.XXXXXX";
    QRM_CHECK(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }

  std::string path_;
};

}  // namespace qrm::test
