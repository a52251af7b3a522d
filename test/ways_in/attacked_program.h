// A program under the memory limit of its chart, which an attack can reach while it serves.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "api/base/status.h"

namespace qrm::test {

/// Threads: Attack on one, Serve on another; the rest while neither runs.
class AttackedProgram {
 public:
  virtual ~AttackedProgram() = default;

  virtual Status Start() = 0;
  /// A pod comes and goes, or kube-scheduler calls. Returns the time of the answer.
  virtual StatusOr<std::chrono::nanoseconds> Serve() = 0;
  /// Returns when the program has read what the attack wrote. Errors: it did not in a minute.
  virtual Status Attack() = 0;
  virtual bool Runs() = 0;
  virtual pid_t pid() const = 0;
};

/// A way in for which there is an attack.
struct WayIn {
  std::string program;
  std::string name;  ///< as docs/ways-in.md has it
  /// With programs of the directory.
  std::function<std::unique_ptr<AttackedProgram>(const std::string& bin_dir)> attack;
};
std::vector<WayIn> AttackedWays();

}  // namespace qrm::test
