// The kernel's files of the machine, as host knobs read and write them; tests replace them.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"

namespace qrm::host {

/// Files by their path below a root: "proc/irq/5/smp_affinity_list".
///
/// Threads: those of the one who uses it.
class HostFiles {
 public:
  virtual ~HostFiles() = default;

  /// What the file holds, without the newline at its end. Errors: kNotFound when it, or the device
  /// behind it, is gone; kPermissionDenied; kUnavailable for what the kernel says otherwise.
  virtual StatusOr<std::string> Read(const std::string& path) const = 0;
  /// Writes with one call, and once more up to three times where the kernel is busy. Errors: as
  /// Read's; kInvalidArgument for a value that the kernel does not take.
  virtual Status Write(const std::string& path, const std::string& value) = 0;
  /// The names in a directory, in order; none where there is no such directory.
  virtual std::vector<std::string> List(const std::string& directory) const = 0;
  /// Whether there is such a file and this process may write it. A file that takes no writes at all
  /// is one that root may not write either.
  virtual bool MayWrite(const std::string& path) const = 0;
};

/// Those below the directory `root`, which is "/" but in tests.
class SystemFiles final : public HostFiles {
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

}  // namespace qrm::host
