// Keeps a plugin registered: recreates its socket, and calls Register again after each restart of
// the manager.
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

}  // namespace qrm::sdk
