// Serves /metrics, /healthz and /readyz over HTTP.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "manager/observability/metrics.h"
#include "manager/observability/node_services.h"
#include "manager/registry/plugins.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {

/// Serves the metrics of `Metrics` and those read at each scrape from the state, the plugins and
/// the daemon's status; /healthz answers 200 while the process lives, /readyz 200 or 503 with the
/// reasons, one a line.
/// Threads: Start and Stop from one thread.
class HttpServer {
 public:
  /// The references outlive the server.
  HttpServer(Metrics& metrics, const Snapshots& snapshots, Plugins& plugins,
             const NodeServices& node);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// `address` is `:9753` or `127.0.0.1:9753`, with port 0 for any free one; empty: nothing
  /// listens. Errors: kInvalidArgument for another form, kUnavailable when the address is taken.
  Status Start(const std::string& address);
  void Stop();

  /// Where it listens; 0 when it does not.
  int port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
