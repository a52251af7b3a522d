// Serves the live page of the node.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/base/status.h"
#include "manager/observability/http_options.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

class NodeServices;
class Plugins;
class Snapshots;

/// The content of the page's file `name`, which is embedded in the program; empty if there is no
/// such file.
std::string_view FindPageFile(std::string_view name);

/// Serves a page that shows this node live. The page gets /node.json once a second. The document is
/// built at most twice a second for all clients, and is not sent to clients that have the current
/// version. The server has its own thread, so that probes and scrapes do not wait for it.
///
/// Threads: Start and Stop from one thread.
class PageServer {
 public:
  /// All outlive the server.
  struct Sources {
    const Snapshots& snapshots;
    const Plugins& plugins;
    const NodeServices& node;
    const Machine& machine;
    std::string node_name;
  };
  explicit PageServer(Sources sources);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  /// Does nothing if `page_address` is empty. Errors: kInvalidArgument for an invalid address,
  /// kUnavailable when it is in use.
  Status Start(const HttpOptions& options);
  void Stop();

  /// The port of the server; 0 if it does not listen.
  int port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
