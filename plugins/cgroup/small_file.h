// Reads the kernel's small files whole, and writes them with one call; reports errno.
#pragma once

#include <string>
#include <string_view>

#include "api/base/file_descriptor.h"

namespace qrm::cgroup {

/// An open file, closed at the end.
class SmallFile {
 public:
  /// `flags` as in open(2).
  SmallFile(const std::string& path, int flags);

  /// 0, or the errno of the last call.
  [[nodiscard]] int error() const { return error_; }

  /// The whole content; sets error().
  std::string Read();
  /// The same for a file that the kernel returns in one read, such as a file of a few lines.
  std::string ReadShort();
  /// Writes `text` with one call, as the kernel's command files require; sets error().
  void Write(std::string_view text);

 private:
  FileDescriptor file_;
  int error_;
};

/// The file's content, without the newline at its end; empty if it cannot be read.
std::string ReadLine(const std::string& path);

}  // namespace qrm::cgroup
