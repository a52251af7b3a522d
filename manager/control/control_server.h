// The control socket: what qrmctl shows, and what plugins and operators may ask of qrmd.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "api/base/status.h"
#include "manager/observability/node_services.h"
#include "manager/registry/plugins.h"
#include "manager/state/state_loop.h"
#include "topology/machine.h"

namespace qrm::manager {

struct ControlOptions {
  /// Who may connect besides root and the user that qrmd runs as.
  std::vector<uid_t> allowed_uids;
  std::chrono::milliseconds plugin_timeout{2000};  ///< of GetPools and SetPools
};

/// Serves qrm.v1.Control on a socket of mode 0600. Reading calls answer from the snapshot; nothing
/// that is asked here keeps an admission waiting.
/// Threads: Start and Stop from one thread.
class ControlServer {
 public:
  /// The references outlive the server.
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
