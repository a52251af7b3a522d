// The daemon's periodic work.
#pragma once

#include <memory>
#include <string>

#include "api/base/io_context.h"

namespace qrm::manager {

class KubeletWatch;
class Reconciler;
class RuntimeFollower;

/// Work of the daemon that housekeeping begins.
class Chores {
 public:
  virtual ~Chores() = default;
  /// Looks for what makes the node degraded, and logs when it begins and ends.
  virtual void LookForFaults() = 0;
  /// The configuration file has changed.
  virtual void ReadAgain() = 0;
};

/// Checks whether kubelet pins containers itself, and places containers when kubelet stops that.
/// Stops qrmd when its mounts of kubelet's state files are outdated. Looks for faults of the node.
/// Returns free memory to the kernel. Looks at the configuration file every second: inotify does
/// not report changes behind a symbolic link, which is how kubelet updates ConfigMaps, nor changes
/// in some file systems.
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
    Chores& chores;
    std::string config_file;  ///< empty: none
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
  /// The configuration file was just read for another reason, and its version is not a change.
  void KnowConfig();

 private:
  struct Timers;
  void LookForFaults();
  void DoChores();
  void LookAtConfig();

  const Parts parts_;
  const std::unique_ptr<Timers> timers_;
};

}  // namespace qrm::manager
