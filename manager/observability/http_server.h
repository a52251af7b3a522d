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

/// Serves the metrics of `Metrics` and those read at each scrape from the state, the plugins and
/// the daemon's status; /healthz answers 200 or 503 with the loops that do not turn, /readyz 200 or
/// 503 with the reasons, one a line. Two ports, so that who may read the one need not reach the
/// other.
/// Threads: Start and Stop from one thread.
class HttpServer {
 public:
  /// The references outlive the server.
  HttpServer(Metrics& metrics, const Snapshots& snapshots, Plugins& plugins, NodeServices& node,
             const Machine& machine);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Port 0 is any free one. Errors: kInvalidArgument for what is no address, kUnavailable when it
  /// is taken.
  Status Start(const HttpOptions& options);
  void Stop();

  /// Where it listens; 0 when it does not.
  int metrics_port() const;
  int probe_port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
