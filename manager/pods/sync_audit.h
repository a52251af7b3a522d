// Lists the runtime's pods and containers where its events are incomplete.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "api/base/io_context.h"
#include "manager/runtime/cri/cri_client.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {

/// What a list has shown.
enum class ListVerdict {
  kCertain,
  kUnconfirmed,   ///< another list has to confirm it soon
  kContradicted,  ///< it is of another runtime than NRI's
};

/// Receives the findings of an audit. Threads: the I/O loop.
class AuditListener {
 public:
  virtual ~AuditListener() = default;
  /// What the runtime listed.
  virtual ListVerdict OnListed(const RuntimeList& list) = 0;
  /// The runtime has to synchronize again.
  virtual void OnLeftOut() = 0;
  /// It did, and left out this container again. The container has its resources.
  virtual void OnLeftOutAgain(const RuntimePod& pod, RuntimeContainer container) = 0;
};

/// When to list.
struct AuditOptions {
  /// After a synchronization, ascending.
  std::vector<std::chrono::milliseconds> delays{std::chrono::seconds(2), std::chrono::seconds(10)};
  /// While pods are on record that no event of this connection has mentioned.
  std::chrono::milliseconds period{5000};
  /// After LookSoon, and after a list that has to be confirmed: most stops have been reported then.
  std::chrono::milliseconds soon{1000};
};

/// Lists the runtime's pods and containers over CRI after each synchronization, and for as long as
/// pods are on record that came by one. The reason: runtimes report what is created during a
/// synchronization neither in it nor by an event. A restarted runtime does not report the end of
/// older sandboxes.
///
/// Asks for another synchronization when two lists in a row have an unknown container; a single
/// list may be older than the container's end. Asks once for each container: one that the runtime
/// never reports is then followed over CRI, and causes no more synchronizations.
///
/// Cost: nothing while all pods on record have come by events.
/// Threads: the I/O loop, or before it runs.
/// Source: containerd issues 11329 and 13698, cri-o issue 10090; containerd's restored NRI state,
/// which has containers only.
class SyncAudit {
 public:
  struct Parts {
    boost::asio::io_context& io;
    ContainerRuntime& runtime;
    const Snapshots& state;
    const LiveContainers& live;
    AuditListener& listener;
    /// Called when the memory of a list, some megabytes, is free again. Threads: the I/O loop.
    std::function<void()> after_list = [] {};
  };
  /// All parts outlive the audit.
  explicit SyncAudit(Parts parts, AuditOptions options = {});
  ~SyncAudit();
  SyncAudit(const SyncAudit&) = delete;
  SyncAudit& operator=(const SyncAudit&) = delete;

  void OnSynchronized();
  /// No list is made until the next synchronization.
  void OnDisconnected();
  /// A pod may have ended without an event.
  void LookSoon();
  /// Ends all work.
  void Stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
