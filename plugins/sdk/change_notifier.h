// Tells the manager that a plugin's allocations changed.
#pragma once

#include <memory>
#include <string>

namespace qrm::sdk {

/// Calls qrm.v1.Control/NotifyChanged on the manager's control socket. One call at a time: what is
/// notified during a call leads to one more, together. A socket that is missing, or belongs to a
/// manager without that call, is logged once at info level: such a manager sees the change at its
/// next reconcile, and a new one at registration.
///
/// Threads: any.
class ChangeNotifier {
 public:
  ChangeNotifier(std::string control_socket, std::string resource);
  /// Ends the call in progress; nothing is called after it.
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
