// Follows the container runtime, over NRI or, while that is away, over CRI.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "manager/pods/node_parts.h"
#include "manager/pods/pods_options.h"
#include "manager/pods/resizes.h"
#include "manager/pods/runtime_mode.h"
#include "manager/pods/sync_audit.h"
#include "manager/pods/unplaced.h"
#include "manager/runtime/runtime_options.h"

namespace qrm::manager {

struct FollowerOptions {
  PodsOptions pods;                        ///< but the observer's period
  std::chrono::milliseconds period{3000};  ///< between two looks over CRI; the reconciler's
  std::chrono::milliseconds admission_deadline{1200};
  AuditOptions audits;
  /// As SyncAudit::Parts::after_list.
  std::function<void()> after_list = [] {};
  std::chrono::milliseconds version_period{5000};  ///< between two questions for CRI's version
};

/// Admits what the runtime creates before its first instruction, and what runs without an admission
/// after the fact; removes pods that are gone. The observer takes over while NRI is away, audits
/// find what neither a synchronization nor an event told, and pods end although their sandboxes
/// stay.
class RuntimeFollower {
 public:
  /// `parts` outlive the follower.
  RuntimeFollower(NodeParts parts, NriOptions nri, FollowerOptions options);
  ~RuntimeFollower();
  RuntimeFollower(const RuntimeFollower&) = delete;
  RuntimeFollower& operator=(const RuntimeFollower&) = delete;

  /// Attaches to the runtime. Errors: as NriPlugin::Start. Threads: the I/O loop.
  Status Start();
  /// Nothing is asked or begun after it. Threads: the I/O loop.
  void Stop();

  /// Threads: any.
  [[nodiscard]] RuntimeStatus GetStatus() const;
  [[nodiscard]] UnplacedStatus unplaced() const;
  [[nodiscard]] const Resizes& resizes() const;
  /// Tries again to admit the containers that run without an admission, as when kubelet pins no
  /// longer. Threads: any.
  void RetryUnplaced();
  /// The same when a plugin is back or new, which may be asked of them for the first time.
  void OnPluginRegistered(const std::string& resource);
  /// Kubelet says that the pod is gone: its place is free as soon as it has ended. Threads: the
  /// I/O loop.
  void OnPodGone(const std::string& pod_uid);
  /// Plugins were asked what containers have now: those that run without an admission leave the
  /// CPUs that others own. Threads: the state loop.
  void OnReconciled();
  /// A whole reconcile: asks plugins again for the containers that request something else than
  /// their records say. Threads: the state loop.
  void CompareAllRequests();
  /// Makes up for removals and placements that failed while the disk refused changes. Threads: the
  /// state loop.
  void OnDiskReturned();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
