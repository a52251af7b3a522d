// The I/O loop, which runs timers, signals, sockets and what others post.
#pragma once

#include <functional>

#include "api/base/hidden.h"
#include "api/base/io_context.h"

namespace qrm::manager {

/// A loop on a thread of its own.
///
/// Threads: one starts and stops it; `io` any.
class IoLoop {
 public:
  IoLoop();
  ~IoLoop();
  IoLoop(const IoLoop&) = delete;
  IoLoop& operator=(const IoLoop&) = delete;

  /// Runs what was posted before, and all else until Stop.
  void Start();
  /// Runs `work` on the loop, which has started, and waits for its end.
  void Run(const std::function<void()>& work);
  /// Ends the loop; operations in flight are left as they are. May be repeated.
  void Stop();

  boost::asio::io_context& io();

 private:
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::manager
