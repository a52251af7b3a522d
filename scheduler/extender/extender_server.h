// qrm-scheduler serve: everything that it is made of.
#pragma once

#include <memory>

#include "api/base/status.h"
#include "cluster/access.h"
#include "scheduler/extender/serve_options.h"

namespace qrm::scheduler {

/// Follows the cluster, and answers kube-scheduler at one address and monitors at another.
///
/// Threads: one for the API server, one for HTTP, the cache's writer, two that judge, and one that
/// compares; made and destroyed on any.
class ExtenderServer {
 public:
  /// `options` have passed CheckServe. Errors: kUnavailable for addresses that are taken.
  static StatusOr<std::unique_ptr<ExtenderServer>> Start(const ServeOptions& options,
                                                         cluster::ClusterAccess access);
  /// Gives the lease up when nothing is being bound any more.
  ~ExtenderServer();
  ExtenderServer(const ExtenderServer&) = delete;
  ExtenderServer& operator=(const ExtenderServer&) = delete;

  int port() const;
  int monitor_port() const;

 private:
  struct Impl;
  explicit ExtenderServer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::scheduler
