// Reads and writes the machine's files, with the kernel's errors.
#include "plugins/kernel/kernel_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/base/errorf.h"

namespace qrm::kernel {
namespace {

constexpr int kMostTries = 3;

StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return StatusCode::kNotFound;
    case EPERM:
    case EACCES:
    case EROFS:
      return StatusCode::kPermissionDenied;
    case EINVAL:
    case ERANGE:
    case EOPNOTSUPP:
      return StatusCode::kInvalidArgument;
    default:
      return StatusCode::kUnavailable;
  }
}

bool IsPassing(int error) {
  return error == EBUSY || error == EINTR || error == EAGAIN;
}

}  // namespace

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

std::vector<std::string> WordsIn(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

StatusOr<std::string> SystemFiles::Read(const std::string& path) const {
  SmallFile file(PathOf(path), O_RDONLY);
  std::string text = file.error() == 0 ? file.Read() : "";
  if (file.error() != 0) {
    return Errorf(CodeOf(file.error()), "cannot read {}: {}", PathOf(path),
                  std::strerror(file.error()));
  }
  if (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

Status SystemFiles::Write(const std::string& path, const std::string& value) {
  int error = EBUSY;
  for (int i = 0; i < kMostTries && IsPassing(error); ++i) {
    SmallFile file(PathOf(path), O_WRONLY | O_TRUNC);
    if (file.error() == 0) {
      file.Write(value.empty() ? "\n" : value);  // an empty write changes nothing
    }
    error = file.error();
  }
  return error == 0 ? OkStatus()
                    : Errorf(CodeOf(error), "cannot write {} to {}: {}", value, PathOf(path),
                             std::strerror(error));
}

std::vector<std::string> SystemFiles::List(const std::string& directory) const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(PathOf(directory), error), end;
       !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  std::ranges::sort(names);
  return names;
}

bool SystemFiles::MayWrite(const std::string& path) const {
  struct stat status = {};
  return ::access(PathOf(path).c_str(), W_OK) == 0 && ::stat(PathOf(path).c_str(), &status) == 0 &&
         (status.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) != 0;
}

}  // namespace qrm::kernel
