// Waits for the signals that stop the daemon, and handles SIGHUP.
#pragma once

#include <functional>

#include "api/base/hidden.h"
#include "api/base/io_context.h"

namespace qrm::manager {

/// Handles SIGTERM and SIGINT from its construction on, and SIGHUP from OnHangup on.
///
/// Threads: one thread; signals are handled on the I/O loop.
class StopSignals {
 public:
  explicit StopSignals(boost::asio::io_context& io);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Runs `on_hangup` on the I/O loop at each SIGHUP. Call once.
  void OnHangup(std::function<void()> on_hangup);

  /// Returns at the first SIGTERM or SIGINT. Call once.
  void Wait();

 private:
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::manager
