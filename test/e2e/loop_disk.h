// A private block device, and a writer whose speed can be measured.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "api/base/status.h"

namespace qrm::test {

/// A loop device over a file that is removed with it.
class LoopDisk {
 public:
  /// Errors: kFailedPrecondition where the machine has none.
  static StatusOr<std::unique_ptr<LoopDisk>> Make(const std::string& file, std::size_t mebibytes);
  ~LoopDisk();
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;

  const std::string& path() const { return path_; }
  /// "7:3".
  const std::string& id() const { return id_; }

 private:
  LoopDisk(std::string file, int disk, std::string path, std::string id);

  const std::string file_;
  const int disk_;  // open: it is detached when the last one closes
  const std::string path_;
  const std::string id_;
};

/// A process in a cgroup of its own choice that writes to a disk past the page cache.
class DiskWriter {
 public:
  /// Begins to write so many bytes from within the cgroup at `directory`.
  DiskWriter(const std::string& directory, const std::string& disk, std::size_t mebibytes);
  ~DiskWriter();
  DiskWriter(const DiskWriter&) = delete;
  DiskWriter& operator=(const DiskWriter&) = delete;

  /// Waits until it has done so many of its writes. False when a write failed before.
  bool AwaitWrites(std::size_t count);

  /// The time of each of its writes (kWriteBytes), from its start; waits for the last. Fewer than
  /// requested when a write failed.
  std::vector<std::chrono::nanoseconds> Finish();

  static constexpr std::size_t kWriteBytes = 256 << 10;

 private:
  bool ReadOne();

  int done_ = -1;  // a pipe: one time for each write
  std::vector<std::chrono::nanoseconds> times_;
  pid_t pid_ = -1;
};

}  // namespace qrm::test
