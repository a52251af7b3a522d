// Whole reads and single writes of the kernel's small files, with errno.
#pragma once

#include <string>
#include <string_view>

#include "api/base/file_descriptor.h"

namespace qrm::cgroup {

/// An open file, closed at the end.
class SmallFile {
 public:
  /// `flags` as open(2) has them.
  SmallFile(const std::string& path, int flags);

  /// 0, or why the last call failed.
  [[nodiscard]] int error() const { return error_; }

  /// All that it holds; sets error().
  std::string Read();
  /// The same of a file that the kernel gives with one read, as files of a few lines.
  std::string ReadShort();
  /// Writes `text` with one call, as files that take commands need it; sets error().
  void Write(std::string_view text);

 private:
  FileDescriptor file_;
  int error_;
};

/// What the file holds, without the newline at its end; empty where it cannot be read.
std::string ReadLine(const std::string& path);

}  // namespace qrm::cgroup
