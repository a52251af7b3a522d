// Tells systemd that qrmd serves, ends, and is alive.
#pragma once

#include <functional>

#include "api/base/hidden.h"
#include "api/base/io_context.h"

namespace qrm::manager {

/// The socket of a service manager, as NOTIFY_SOCKET names it; without one, nothing is told.
///
/// Threads: Ready and Ending from one; the watchdog is fed on the I/O loop.
/// Source: sd_notify(3), sd_watchdog_enabled(3).
class ServiceManager {
 public:
  /// `io` outlives the object; `is_alive` says on it whether the process does its work.
  ServiceManager(boost::asio::io_context& io, std::function<bool()> is_alive);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  /// It serves; from now on the watchdog, if there is one, is fed while it is alive.
  void Ready();
  /// It ends; on the I/O loop, or when that has ended.
  void Ending();

 private:
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::manager
