// A limit of memory as kubelet sets it for a container, and what a process took under it.
#pragma once

#include <cstddef>
#include <string>

#include <sys/types.h>

namespace qrm::test {

/// A cgroup with a limit of memory, where this process may make one (as root, with the controller
/// there); elsewhere none.
///
/// Threads: one. Source: cgroups(7), memory controller of both versions.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  /// What the process takes from now on counts.
  void Add(pid_t process) const;

 private:
  std::string directory_;  // empty: none
};

}  // namespace qrm::test
