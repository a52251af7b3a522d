// The kernel's files: whole reads, writes with one call, and what the errors mean. Tests replace
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/base/file_descriptor.h"
#include "api/base/status.h"

namespace qrm::kernel {

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

/// The words of `text`, between blanks and line breaks.
std::vector<std::string> WordsIn(const std::string& text);

/// Files by their path below a root, such as "proc/irq/5/smp_affinity_list".
///
/// Threads: the caller's.
class KernelFiles {
 public:
  virtual ~KernelFiles() = default;

  /// The file's content, without the newline at its end. Errors: kNotFound if the file or its
  /// device is gone; kPermissionDenied; kUnavailable for other errors of the kernel.
  virtual StatusOr<std::string> Read(const std::string& path) const = 0;
  /// Writes with one call, repeated up to three times if the kernel is busy. Errors: as Read's;
  /// kInvalidArgument for a value that the kernel rejects.
  virtual Status Write(const std::string& path, const std::string& value) = 0;
  /// The names in a directory, sorted; empty if there is no such directory.
  virtual std::vector<std::string> List(const std::string& directory) const = 0;
  /// Whether the file exists and this process may write it. A file without write permission is not
  /// writable for root either.
  virtual bool MayWrite(const std::string& path) const = 0;
};

/// The files below the directory `root`, which is "/" except in tests.
class SystemFiles final : public KernelFiles {
 public:
  explicit SystemFiles(std::string root) : root_(std::move(root)) {}

  StatusOr<std::string> Read(const std::string& path) const override;
  Status Write(const std::string& path, const std::string& value) override;
  std::vector<std::string> List(const std::string& directory) const override;
  bool MayWrite(const std::string& path) const override;

 private:
  std::string PathOf(const std::string& path) const { return root_ + "/" + path; }

  const std::string root_;
};

}  // namespace qrm::kernel
