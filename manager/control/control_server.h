// The control socket, for qrmctl and for plugins.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "manager/control/control_options.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

class NodeServices;
class Plugins;
class Snapshots;

/// Serves qrm.v1.Control on a socket of mode 0600, or 0666 with ControlOptions::allowed_uids. Other
/// users are disconnected before their first byte is read. Calls that only read answer from a
/// snapshot. No call delays an admission. Threads: Start and Stop from one thread.
class ControlServer {
 public:
  /// All references outlive the server.
  ControlServer(const Snapshots& snapshots, Plugins& plugins, const Machine& machine,
                NodeServices& node, ControlOptions options = {});
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// Errors: as UnixServer::Start.
  Status Start(const std::string& socket_path);
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
