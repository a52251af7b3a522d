// Keeps a plugin known to the manager: the socket in its place, and Register called again whenever
// the manager is a new one.
#pragma once

#include <memory>
#include <string>

#include "plugins/sdk/host.h"

namespace qrm::sdk {

/// Where a plugin and its manager meet.
struct MeetingPlace {
  std::string plugin_socket;
  std::string manager_socket;  ///< where to call Register; empty in a watched directory
};

/// Makes the plugin's socket again when somebody removed it, as a starting manager does, and
/// registers again when the manager's socket is another one. Notices both by inotify(7), and by a
/// look every second where inotify is silent. What fails is tried again, and logged once.
class Registrar {
 public:
  /// `host` outlives the registrar, and is used by nobody else meanwhile.
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
