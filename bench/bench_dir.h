// A directory on the disk to measure, removed at the end.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "api/base/check.h"

namespace qrm::bench {

/// Created in QRM_BENCH_DIR, which names the disk to measure, or in /var/tmp: the temporary
/// directory is often in memory.
class BenchDir {
 public:
  BenchDir() {
    const char* parent = std::getenv("QRM_BENCH_DIR");
    path_ = std::string(parent != nullptr ? parent : "/var/tmp") + "/qrm-bench.XXXXXX";
    QRM_CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  ~BenchDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  BenchDir(const BenchDir&) = delete;
  BenchDir& operator=(const BenchDir&) = delete;

  const std::string& path() const { return path_; }
  /// The path of `name` in the directory.
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace qrm::bench
