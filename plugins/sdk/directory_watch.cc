// Watches a directory with inotify(7).
#include "plugins/sdk/directory_watch.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include <sys/inotify.h>
#include <unistd.h>

namespace qrm::sdk {
namespace {

constexpr uint32_t kEvents =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF;

}  // namespace

DirectoryWatch::DirectoryWatch(std::string directory, std::vector<std::string> names)
    : directory_(std::move(directory)),
      names_(std::move(names)),
      fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

DirectoryWatch::~DirectoryWatch() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

void DirectoryWatch::Arm() {
  ::inotify_add_watch(fd_, directory_.c_str(), kEvents);
}

bool DirectoryWatch::Drain() {
  bool relevant = false;
  alignas(inotify_event) std::array<char, 4096> buffer;
  for (ssize_t size = ::read(fd_, buffer.data(), buffer.size()); size > 0;
       size = ::read(fd_, buffer.data(), buffer.size())) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      const std::string_view name = event->len > 0 ? event->name : "";
      relevant = relevant || name.empty() || std::ranges::count(names_, name) > 0;
      at += sizeof(inotify_event) + event->len;
    }
  }
  return relevant;
}

}  // namespace qrm::sdk
