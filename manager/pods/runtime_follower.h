// Follows the container runtime over NRI or, if NRI is not available, over CRI.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "manager/pods/node_parts.h"
#include "manager/pods/pods_options.h"
#include "manager/pods/runtime_mode.h"
#include "manager/pods/sync_audit.h"
#include "manager/runtime/runtime_options.h"

namespace qrm::manager {

class PodPlacer;

struct FollowerOptions {
  PodsOptions pods;                        ///< except for the observer's period
  std::chrono::milliseconds period{3000};  ///< between two looks over CRI; the reconciler's
  std::chrono::milliseconds admission_deadline{1200};
  AuditOptions audits;
  /// As SyncAudit::Parts::after_list.
  std::function<void()> after_list = [] {};
  std::chrono::milliseconds version_period{5000};  ///< between two requests for CRI's version
};

/// Admits containers before their first instruction, and running ones without an admission after
/// the fact; removes pods that are gone. The observer takes over while NRI is not available. Audits
/// find what synchronizations and events left out. Pods can end although their sandboxes remain.
class RuntimeFollower {
 public:
  /// `parts` outlive the follower.
  RuntimeFollower(NodeParts parts, NriOptions nri, FollowerOptions options);
  ~RuntimeFollower();
  RuntimeFollower(const RuntimeFollower&) = delete;
  RuntimeFollower& operator=(const RuntimeFollower&) = delete;

  /// Attaches to the runtime. Errors: as NriPlugin::Start. Threads: the I/O loop.
  Status Start();
  /// Ends all work. Threads: the I/O loop.
  void Stop();

  /// Threads: any.
  [[nodiscard]] RuntimeStatus GetStatus() const;
  /// Decides about the containers. Threads: any; those of its members.
  [[nodiscard]] PodPlacer& placer() const;
  /// Tries again to admit running containers without an admission: the plugin may not have been
  /// asked about them before.
  void OnPluginRegistered(const std::string& resource);
  /// Kubelet reports that the pod is gone: its allocations are released as soon as it has ended.
  /// Threads: the I/O loop.
  void OnPodGone(const std::string& pod_uid);

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
