// Notifies systemd that qrmd is ready, stops, and is alive.
#pragma once

#include <functional>

#include "api/base/hidden.h"
#include "api/base/io_context.h"

namespace qrm::manager {

/// Sends to the service manager's socket, NOTIFY_SOCKET. Without that variable, it sends nothing.
///
/// Threads: Ready and Ending from one thread; the watchdog is notified on the I/O loop.
/// Source: sd_notify(3), sd_watchdog_enabled(3).
class ServiceManager {
 public:
  /// `io` outlives the object. `is_alive` runs on `io` and returns whether qrmd does its work.
  ServiceManager(boost::asio::io_context& io, std::function<bool()> is_alive);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  /// qrmd is ready. From now on, the watchdog is notified while `is_alive` returns true.
  void Ready();
  /// qrmd stops. Call on the I/O loop, or after its end.
  void Ending();

 private:
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::manager
