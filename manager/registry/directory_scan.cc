// Walks the directory tree, and uses inotify and a timer to know when to walk again.
#include "manager/registry/directory_scan.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <sys/inotify.h>
#include <sys/stat.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/rejected.h"
#include "manager/registry/registration_check.h"

namespace qrm::manager {
namespace {

constexpr mode_t kDirectoryMode = 0750;
constexpr uint32_t kEvents =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ATTRIB;
/// Bounds the walk: a bind mount of a large tree must not keep the loop busy.
constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxSockets = 1024;

SocketIdentity IdentityOf(const struct stat& info) {
  constexpr int64_t kNanos = 1'000'000'000;
  return {info.st_dev, info.st_ino, info.st_ctim.tv_sec * kNanos + info.st_ctim.tv_nsec};
}

}  // namespace

struct DirectoryScan::Impl : std::enable_shared_from_this<DirectoryScan::Impl> {
  Impl(boost::asio::io_context& io, std::string dir, std::chrono::milliseconds every,
       std::function<void()> on_change)
      : directory(std::move(dir)),
        period(every),
        changed(std::move(on_change)),
        events(io),
        timer(io) {}

  void ReadEvents();
  void WaitForPeriod();
  void Walk(const std::string& path, int depth, Sockets& found);
  static bool IsTrusted(const Status& checked);

  const std::string directory;
  const std::chrono::milliseconds period;
  std::function<void()> changed;  ///< empty once the scan is gone
  boost::asio::posix::stream_descriptor events;
  boost::asio::steady_timer timer;
  alignas(inotify_event) std::array<char, 4096> buffer{};
};

void DirectoryScan::Impl::ReadEvents() {
  events.async_read_some(
      boost::asio::buffer(buffer),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
        if (error || !self->changed) {
          return;
        }
        self->changed();  // the event's name does not matter: the walk finds the change
        self->ReadEvents();
      });
}

void DirectoryScan::Impl::WaitForPeriod() {
  timer.expires_after(period);
  timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || !self->changed) {
      return;
    }
    self->changed();
    self->WaitForPeriod();
  });
}

void DirectoryScan::Impl::Walk(const std::string& path, int depth, Sockets& found) {
  if (events.is_open()) {  // adding a watch again has no effect
    ::inotify_add_watch(events.native_handle(), path.c_str(), kEvents | IN_ONLYDIR);
  }
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string& name = entry->path().native();
    struct stat info{};
    if (entry->path().filename().native().front() == '.' || ::lstat(name.c_str(), &info) != 0) {
      continue;
    }
    if (S_ISDIR(info.st_mode) && depth < kMaxDepth) {
      if (IsTrusted(CheckPluginDirectory(name))) {
        Walk(name, depth + 1, found);
      }
    } else if (S_ISSOCK(info.st_mode) && found.size() < kMaxSockets &&
               IsTrusted(CheckPluginSocket(name))) {
      found.emplace(name, IdentityOf(info));
    }
  }
}

bool DirectoryScan::Impl::IsTrusted(const Status& checked) {
  if (!checked.ok()) {
    Reject(Rejected::kPluginPath, MessageOf(checked));
  }
  return checked.ok();
}

DirectoryScan::DirectoryScan(boost::asio::io_context& io, std::string directory,
                             std::chrono::milliseconds period, std::function<void()> changed)
    : impl_(std::make_shared<Impl>(io, std::move(directory), period, std::move(changed))) {}

// NOLINTNEXTLINE(bugprone-exception-escape): cancelling a timer throws nothing on Linux.
DirectoryScan::~DirectoryScan() {
  impl_->changed = nullptr;
  boost::system::error_code ignored;
  impl_->events.close(ignored);
  impl_->timer.cancel();
}

Status DirectoryScan::Start() {
  std::error_code error;
  if (std::filesystem::create_directories(impl_->directory, error)) {
    ::chmod(impl_->directory.c_str(), kDirectoryMode);
  }
  if (error) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot watch {} for plugins: {}; make it a directory that qrmd may write",
                  impl_->directory, error.message());
  }
  const int fd = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fd < 0) {
    log::Warning(
        "inotify not available for plugins; scanning every period",
        {{"directory", impl_->directory}, {"error", std::generic_category().message(errno)}});
  } else {
    impl_->events.assign(fd);
    impl_->ReadEvents();
  }
  impl_->WaitForPeriod();
  return OkStatus();
}

Sockets DirectoryScan::Scan() {
  Sockets found;
  impl_->Walk(impl_->directory, 0, found);
  return found;
}

}  // namespace qrm::manager
