// Runs the daemon's periodic chores.
#pragma once

#include <boost/asio/steady_timer.hpp>

#include "api/base/io_context.h"
#include "manager/kubelet/kubelet_watch.h"
#include "manager/pods/runtime_follower.h"
#include "manager/reconcile/reconciler.h"

namespace qrm::manager {

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
  explicit Housekeeping(Parts parts) : parts_(parts), timer_(parts.io), memory_timer_(parts.io) {}

  /// The first time now.
  void Start();
  void Stop();
  /// Gives free memory back when what took it is destroyed.
  void GiveBackSoon();

 private:
  const Parts parts_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer memory_timer_;
  int turns_ = 0;
};

}  // namespace qrm::manager
