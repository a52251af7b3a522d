// Runs the daemon's periodic chores.
#pragma once

#include <memory>

#include "api/base/io_context.h"

namespace qrm::manager {

class KubeletWatch;
class Reconciler;
class RuntimeFollower;

/// Looks whether kubelet pins containers itself, places them when it does so no longer, ends the
/// process when that can no longer be told, and gives the kernel back what is not needed.
///
/// Threads: the I/O loop, or before it runs.
class Housekeeping {
 public:
  /// All outlive the object.
  struct Parts {
    boost::asio::io_context& io;
    KubeletWatch& kubelet;
    RuntimeFollower& follower;
    Reconciler& reconciler;
  };
  explicit Housekeeping(Parts parts);
  ~Housekeeping();
  Housekeeping(const Housekeeping&) = delete;
  Housekeeping& operator=(const Housekeeping&) = delete;

  /// The first time now.
  void Start();
  void Stop();
  /// Gives free memory back when what took it is destroyed.
  void GiveBackSoon();

 private:
  struct Timers;

  const Parts parts_;
  const std::unique_ptr<Timers> timers_;
};

}  // namespace qrm::manager
