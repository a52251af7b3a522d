// The I/O loop, which runs timers, signals, sockets and what others post.
#pragma once

#include <functional>
#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "api/base/io_context.h"

namespace qrm::manager {

/// A loop on a thread of its own.
///
/// Threads: one starts and stops it; `io` any.
class IoLoop {
 public:
  /// Runs what was posted before, and all else until Stop.
  void Start();
  /// Runs `work` on the loop, which has started, and waits for its end.
  void Run(const std::function<void()>& work);
  /// Ends the loop; operations in flight are left as they are. May be repeated.
  void Stop();

  boost::asio::io_context& io() { return io_; }

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{
      io_.get_executor()};
  std::thread thread_;
};

}  // namespace qrm::manager
