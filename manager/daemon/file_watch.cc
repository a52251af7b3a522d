// Asks stat(2) with each tick of a timer.
#include "manager/daemon/file_watch.h"

#include <utility>

#include <sys/stat.h>

namespace qrm::manager {
namespace {

constexpr std::chrono::seconds kPeriod(1);
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

FileWatch::FileWatch(boost::asio::io_context& io, std::string path, std::function<void()> on_change)
    : path_(std::move(path)), on_change_(std::move(on_change)), file_(path_), timer_(io) {}

void FileWatch::Start() {
  if (path_.empty()) {
    return;
  }
  timer_.expires_after(kPeriod);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) {
      return;
    }
    if (file_.HasSettled()) {
      on_change_();
    }
    Start();
  });
}

}  // namespace qrm::manager
