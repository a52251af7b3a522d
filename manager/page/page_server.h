// Serves the live page about the node.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "manager/observability/http_options.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

class NodeServices;
class Plugins;
class Snapshots;

/// Serves a page that shows this node and follows its changes: it asks once a second for
/// /node.json, which is made at most twice a second, for all who ask, and not sent to who has it.
/// A thread of its own, so that neither probes nor scrapes wait for it.
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

  /// Without `page_address`, nothing. Errors: kInvalidArgument for what is no address,
  /// kUnavailable when it is taken.
  Status Start(const HttpOptions& options);
  void Stop();

  /// Where it listens; 0 when it does not.
  int port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
