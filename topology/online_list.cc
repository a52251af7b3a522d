// Keeps the file open: a read from its beginning is what the kernel has now.
#include "topology/online_list.h"

#include <array>
#include <cstddef>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace qrm {

std::shared_ptr<const OnlineList> OnlineList::Open(const std::string& root) {
  const int fd = ::open((root + "/sys/devices/system/cpu/online").c_str(), O_RDONLY | O_CLOEXEC);
  return fd < 0 ? nullptr : std::shared_ptr<const OnlineList>(new OnlineList(fd));
}

OnlineList::~OnlineList() {
  ::close(fd_);
}

std::optional<CpuSet> OnlineList::Read() const {
  std::array<char, 4096> text = {};  // what sysfs has of an attribute at most
  const ssize_t length = ::pread(fd_, text.data(), text.size(), 0);
  if (length <= 0) {
    return std::nullopt;
  }
  std::string_view list(text.data(), static_cast<std::size_t>(length));
  while (!list.empty() && list.back() == '\n') {
    list.remove_suffix(1);
  }
  StatusOr<CpuSet> online = CpuSet::Parse(list);
  return online.ok() && !online->Empty() ? std::optional(*std::move(online)) : std::nullopt;
}

}  // namespace qrm
