// The daemon's periodic work.
#pragma once

#include <memory>

#include "api/base/io_context.h"

namespace qrm::manager {

class KubeletWatch;
class Reconciler;
class RuntimeFollower;

/// Looks for what makes the node degraded, and logs when it begins and ends.
class FaultWatch {
 public:
  virtual ~FaultWatch() = default;
  virtual void LookForFaults() = 0;
};

/// Checks whether kubelet pins containers itself, and places containers when kubelet stops that.
/// Stops qrmd when its mounts of kubelet's state files are outdated. Looks for faults of the node.
/// Returns free memory to the kernel.
///
/// Threads: the I/O loop, or before it runs.
class Housekeeping {
 public:
  /// All outlive Housekeeping.
  struct Parts {
    boost::asio::io_context& io;
    KubeletWatch& kubelet;
    RuntimeFollower& follower;
    Reconciler& reconciler;
    FaultWatch& faults;
  };
  explicit Housekeeping(Parts parts);
  ~Housekeeping();
  Housekeeping(const Housekeeping&) = delete;
  Housekeeping& operator=(const Housekeeping&) = delete;

  /// Runs the work now, and then periodically.
  void Start();
  void Stop();
  /// Returns free memory to the kernel after 100 ms, when the caller's objects are destroyed.
  void GiveBackSoon();

 private:
  struct Timers;
  void LookForFaults();
  void DoChores();

  const Parts parts_;
  const std::unique_ptr<Timers> timers_;
};

}  // namespace qrm::manager
