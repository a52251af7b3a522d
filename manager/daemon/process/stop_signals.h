// Waits for the signals that end the daemon, and passes on the one that does not.
#pragma once

#include <functional>

#include "api/base/hidden.h"
#include "api/base/io_context.h"

namespace qrm::manager {

/// SIGTERM and SIGINT, from its construction on; SIGHUP, from OnHangup on.
///
/// Threads: one, but for the I/O loop, which catches them.
class StopSignals {
 public:
  explicit StopSignals(boost::asio::io_context& io);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Runs `on_hangup` on the I/O loop at each SIGHUP. Once.
  void OnHangup(std::function<void()> on_hangup);

  /// Returns when the first of those that end the daemon has come. Once.
  void Wait();

 private:
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::manager
