// Lists what the runtime has where its events do not tell all.
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

/// What came of a list.
enum class ListVerdict {
  kCertain,
  kUnconfirmed,   ///< another list has to confirm it soon
  kContradicted,  ///< it is of another runtime than NRI tells of
};

/// Hears what an audit finds. Threads: the I/O loop.
class AuditListener {
 public:
  virtual ~AuditListener() = default;
  /// What the runtime listed.
  virtual ListVerdict OnListed(const RuntimeList& list) = 0;
  /// The runtime has to tell everything once more.
  virtual void OnLeftOut() = 0;
  /// It did, and left out this one again. The container has its resources.
  virtual void OnLeftOutAgain(const RuntimePod& pod, RuntimeContainer container) = 0;
};

/// When to list.
struct AuditOptions {
  /// After a synchronization, ascending.
  std::vector<std::chrono::milliseconds> delays{std::chrono::seconds(2), std::chrono::seconds(10)};
  /// While pods are on record that no event of this connection has mentioned.
  std::chrono::milliseconds period{5000};
  /// After LookSoon, and after a list that has to be confirmed: what stops is then mostly told.
  std::chrono::milliseconds soon{1000};
};

/// Lists the runtime's pods and containers over CRI after each synchronization, and for as long as
/// pods are on record that came by one: runtimes tell neither in it nor by an event what is created
/// while it runs, and one that was started anew does not tell the end of sandboxes that are older.
/// Asks for another synchronization when two lists in a row have a container that is unknown (one
/// may be older than its end), once for each, so that one which is never told cannot keep us
/// synchronizing: it is followed by CRI's word.
///
/// Cost: nothing while all that is on record was told by events.
/// Threads: the I/O loop, or before it runs.
/// Source: containerd issues 11329 and 13698, cri-o issue 10090; containerd's restored NRI state,
/// which knows containers only.
class SyncAudit {
 public:
  struct Parts {
    boost::asio::io_context& io;
    ContainerRuntime& runtime;
    const Snapshots& state;
    const LiveContainers& live;
    AuditListener& listener;
    /// What a list took, which is megabytes, is free again. Threads: the I/O loop.
    std::function<void()> after_list = [] {};
  };
  /// All parts outlive the audit.
  explicit SyncAudit(Parts parts, AuditOptions options = {});
  ~SyncAudit();
  SyncAudit(const SyncAudit&) = delete;
  SyncAudit& operator=(const SyncAudit&) = delete;

  void OnSynchronized();
  /// Nothing is listed until the next synchronization.
  void OnDisconnected();
  /// Something may have ended unheard.
  void LookSoon();
  /// Nothing is asked after it.
  void Stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
