// Reads and writes the kernel's small files.
#include "plugins/cgroup/small_file.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace qrm::cgroup {

SmallFile::SmallFile(const std::string& path, int flags)
    : file_(::open(path.c_str(), flags | O_CLOEXEC)), error_(file_.get() < 0 ? errno : 0) {}

std::string SmallFile::Read() {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t size = ::read(file_.get(), part.data(), part.size());
    if (size <= 0) {
      error_ = size < 0 ? errno : 0;
      return text;
    }
    text.append(part.data(), static_cast<std::size_t>(size));
  }
}

std::string SmallFile::ReadShort() {
  std::array<char, 1024> text;
  const ssize_t size = ::read(file_.get(), text.data(), text.size());
  error_ = size < 0 ? errno : 0;
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

void SmallFile::Write(std::string_view text) {
  error_ = ::write(file_.get(), text.data(), text.size()) < 0 ? errno : 0;
}

std::string ReadLine(const std::string& path) {
  SmallFile file(path, O_RDONLY);
  std::string text = file.error() == 0 ? file.Read() : "";
  if (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

}  // namespace qrm::cgroup
