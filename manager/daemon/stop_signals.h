// Waits for the signals that end the daemon.
#pragma once

#include <future>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

namespace qrm::manager {

/// SIGTERM and SIGINT, from its construction on.
///
/// Threads: one, but for the I/O loop, which catches them.
class StopSignals {
 public:
  explicit StopSignals(boost::asio::io_context& io);

  /// Returns when the first of them has come. Once.
  void Wait() { caught_.get_future().wait(); }

 private:
  boost::asio::signal_set signals_;
  std::promise<void> caught_;
};

}  // namespace qrm::manager
