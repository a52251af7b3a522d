// A plugin's own calls to the manager: the registrar recreates the plugin's socket and calls
// Register again after each restart of the manager, the notifier reports changed allocations.
#pragma once

#include <memory>
#include <string>

#include "plugins/sdk/host.h"

namespace qrm::sdk {

/// The sockets of a plugin and its manager.
struct MeetingPlace {
  std::string plugin_socket;
  std::string manager_socket;  ///< where to call Register; empty in a watched directory
};

/// Recreates the plugin's socket when it was removed, as a starting manager does, and registers
/// again when the manager's socket is a new file. Notices both by inotify(7), and by a check every
/// second where inotify reports nothing. A failure is retried, and logged once.
class Registrar {
 public:
  /// `host` must outlive the registrar; no other code may use it meanwhile.
  Registrar(PluginHost& host, MeetingPlace place);
  /// Ends a registration in progress.
  ~Registrar();
  Registrar(const Registrar&) = delete;
  Registrar& operator=(const Registrar&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

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
