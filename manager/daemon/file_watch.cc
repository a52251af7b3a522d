// Looks at the file with each tick of a timer.
#include "manager/daemon/file_watch.h"

#include <chrono>
#include <utility>

namespace qrm::manager {
namespace {

constexpr std::chrono::seconds kPeriod(1);

}  // namespace

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
