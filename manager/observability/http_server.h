// Serves /metrics on one port, and /healthz and /readyz on another.
#pragma once

#include <memory>

#include "api/base/status.h"
#include "manager/observability/http_options.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

struct Metrics;
class NodeServices;
class Plugins;
class Snapshots;

/// Serves the counters of `Metrics`, and metrics that are read at each scrape from the state, the
/// plugins and the daemon's status. /healthz answers 200, or 503 with the loops that do not run.
/// /readyz answers 200, or 503 with the reasons, one per line. Metrics and probes have separate
/// ports, so that access to one does not give access to the other.
/// Threads: Start and Stop from one thread.
class HttpServer {
 public:
  /// The references outlive the server.
  HttpServer(Metrics& metrics, const Snapshots& snapshots, Plugins& plugins, NodeServices& node,
             const Machine& machine);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Port 0 means any free port. Errors: kInvalidArgument for an invalid address, kUnavailable
  /// when the port is in use.
  Status Start(const HttpOptions& options);
  void Stop();

  /// The ports that it listens on; 0 when it does not listen.
  int metrics_port() const;
  int probe_port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
