// The I/O loop: runs timers, signals, sockets and posted tasks.
#pragma once

#include <functional>

#include "api/base/hidden.h"
#include "api/base/io_context.h"

namespace qrm::manager {

/// A loop on its own thread.
///
/// Threads: Start, Run and Stop from one thread; `io` any.
class IoLoop {
 public:
  IoLoop();
  ~IoLoop();
  IoLoop(const IoLoop&) = delete;
  IoLoop& operator=(const IoLoop&) = delete;

  /// Runs all tasks until Stop, including those that were posted before.
  void Start();
  /// Runs `work` on the loop and waits for its end. Call after Start.
  void Run(const std::function<void()>& work);
  /// Ends the loop without waiting for operations in flight. May be called again.
  void Stop();

  boost::asio::io_context& io();

 private:
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::manager
