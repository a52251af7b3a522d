// Asks stat(2).
#include "api/base/changed_file.h"

#include <utility>

#include <sys/stat.h>

namespace qrm {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

}  // namespace

std::optional<ChangedFile::Version> ChangedFile::Look() const {
  struct stat status{};
  if (::stat(path_.c_str(), &status) != 0) {
    return std::nullopt;
  }
  return Version(status.st_dev, status.st_ino, status.st_size,
                 status.st_mtim.tv_sec * kNanosPerSecond + status.st_mtim.tv_nsec);
}

bool ChangedFile::HasSettled() {
  const std::optional<Version> now = Look();
  const bool settled = now.has_value() && now == std::exchange(last_, now) && now != known_;
  if (settled) {
    known_ = now;
  }
  return settled;
}

}  // namespace qrm
