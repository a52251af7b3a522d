// Reads which CPUs are online at the moment.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/id_set.h"

namespace qrm {

/// The kernel's list of the CPUs that are online, which changes while we run.
///
/// Threads: any. Source: Documentation/admin-guide/cputopology.rst, /sys/devices/system/cpu/online.
class OnlineList {
 public:
  /// The list below `root`, which stands for "/"; null when it cannot be opened.
  static std::shared_ptr<const OnlineList> Open(const std::string& root);
  ~OnlineList();
  OnlineList(const OnlineList&) = delete;
  OnlineList& operator=(const OnlineList&) = delete;

  /// The CPUs online now; absent when the list cannot be read. Cost: one read of a few bytes.
  std::optional<CpuSet> Read() const;

 private:
  explicit OnlineList(int fd) : fd_(fd) {}

  const int fd_;
};

}  // namespace qrm
