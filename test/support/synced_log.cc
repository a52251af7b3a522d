// Plain files, and no more than a write and an fdatasync.
#include "test/support/synced_log.h"

#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "api/base/check.h"

namespace qrm::test {
namespace {

/// As the checkpoint's log: 256 pages.
constexpr std::size_t kLogBytes = std::size_t{256} * 4096;

}  // namespace

SyncedLog::SyncedLog(const std::string& path, std::size_t record_bytes, Length length)
    : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)),
      record_(record_bytes, 'x'),
      length_(length) {
  QRM_CHECK(fd_ >= 0);
  if (length_ == Length::kStays) {
    const std::string blank(kLogBytes + record_bytes, '\0');
    QRM_CHECK(::write(fd_, blank.data(), blank.size()) == static_cast<ssize_t>(blank.size()));
  }
  QRM_CHECK(::fsync(fd_) == 0);
}

SyncedLog::~SyncedLog() {
  ::close(fd_);
}

void SyncedLog::Append() {
  if (length_ == Length::kStays && end_ >= kLogBytes) {
    end_ = 0;
  }
  const auto size = static_cast<ssize_t>(record_.size());
  QRM_CHECK(::pwrite(fd_, record_.data(), record_.size(), static_cast<off_t>(end_)) == size);
  QRM_CHECK(::fdatasync(fd_) == 0);
  end_ += record_.size();
}

}  // namespace qrm::test
