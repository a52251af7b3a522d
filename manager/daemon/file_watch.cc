// Checks the file at each tick of a timer.
#include "manager/daemon/file_watch.h"

#include <chrono>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "api/base/changed_file.h"

namespace qrm::manager {
namespace {

constexpr std::chrono::seconds kPeriod(1);

}  // namespace

struct FileWatch::Impl {
  const std::string path;
  const std::function<void()> on_change;
  ChangedFile file;
  boost::asio::steady_timer timer;
};

FileWatch::FileWatch(boost::asio::io_context& io, const std::string& path,
                     std::function<void()> on_change)
    : impl_(
          new Impl{path, std::move(on_change), ChangedFile(path), boost::asio::steady_timer(io)}) {}

FileWatch::~FileWatch() = default;

void FileWatch::Start() {
  if (impl_->path.empty()) {
    return;
  }
  impl_->timer.expires_after(kPeriod);
  impl_->timer.async_wait([this](const boost::system::error_code& error) {
    if (error) {
      return;
    }
    if (impl_->file.HasSettled()) {
      impl_->on_change();
    }
    Start();
  });
}

void FileWatch::Stop() {
  impl_->timer.cancel();
}

void FileWatch::Know() {
  impl_->file.Know();
}

}  // namespace qrm::manager
