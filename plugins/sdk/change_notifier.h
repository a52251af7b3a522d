// Notifies the manager that a plugin's allocations changed.
#pragma once

#include <memory>
#include <string>

namespace qrm::sdk {

/// Calls qrm.v1.Control/NotifyChanged on the manager's control socket. One call at a time: all
/// notifications during a call lead to one further call. If the socket is missing, or the manager
/// does not support the call, this is logged once at info level. The manager then sees the change
/// at its next reconcile, or at registration.
///
/// Threads: any.
class ChangeNotifier {
 public:
  ChangeNotifier(std::string control_socket, std::string resource);
  /// Cancels the call in progress; no further call follows.
  ~ChangeNotifier();
  ChangeNotifier(const ChangeNotifier&) = delete;
  ChangeNotifier& operator=(const ChangeNotifier&) = delete;

  /// Returns at once.
  void Notify();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::sdk
