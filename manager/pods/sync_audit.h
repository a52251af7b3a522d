// Finds containers that a synchronization left out.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "manager/runtime/cri/cri_client.h"
#include "manager/runtime/live_containers.h"

namespace qrm::manager {

/// Hears what an audit finds. Threads: the I/O loop.
class AuditListener {
 public:
  virtual ~AuditListener() = default;
  /// All sandboxes that are ready, with each list.
  virtual void OnListed(const std::vector<RuntimePod>& ready) = 0;
  /// The runtime has to tell everything once more.
  virtual void OnLeftOut() = 0;
};

/// After each synchronization, lists the runtime's containers over CRI and asks for another
/// synchronization when some are unknown: runtimes tell neither in it nor by an event what is
/// created while it runs. Asks once for each container, so that one which is never told cannot keep
/// us synchronizing.
///
/// Threads: the I/O loop, or before it runs.
/// Source: containerd issues 11329 and 13698, cri-o issue 10090.
class SyncAudit {
 public:
  struct Parts {
    boost::asio::io_context& io;
    ContainerRuntime& runtime;
    const LiveContainers& live;
    AuditListener& listener;
  };
  /// All parts outlive the audit. `delays` are the times after a synchronization, ascending.
  explicit SyncAudit(Parts parts, std::vector<std::chrono::milliseconds> delays = {
                                      std::chrono::seconds(2), std::chrono::seconds(10)});
  ~SyncAudit();
  SyncAudit(const SyncAudit&) = delete;
  SyncAudit& operator=(const SyncAudit&) = delete;

  void OnSynchronized();
  /// Nothing is asked after it.
  void Stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
