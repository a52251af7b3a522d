// Keeps the API server's objects about this node equal to the state.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/resource.h"
#include "cluster/access.h"
#include "manager/classes/class_choice.h"
#include "manager/observability/node_status.h"
#include "manager/publish/node_patch.h"
#include "manager/publish/pod_warnings.h"
#include "manager/publish/publish_options.h"
#include "manager/state/state_loop.h"
#include "plugins/placement/permissions.h"
#include "topology/machine.h"
#include "topology/merge.h"

namespace qrm::manager {

/// Every interval, compares the state with the objects that a watch reports, and writes each object
/// that differs in one request. Several changes are one write, and changes by other writers are
/// reverted. The publisher has its own thread, so nothing waits for it.
///
/// Threads: any; Start and Stop from one thread.
class Publisher {
 public:
  /// All outlive the publisher.
  struct Parts {
    const Snapshots& snapshots;
    const Machine& machine;
    /// What the plugins offer; null until they have answered.
    std::function<std::shared_ptr<const AllocatableByResource>()> allocatable;
    std::function<std::shared_ptr<const OfferedTypes>()> types;
    ClassProblems class_problems;
    /// The configuration for schedulers, while the CPUs `offline` are offline.
    std::function<StatusOr<std::string>(const checkpoint::NodeState&, const CpuSet& offline)>
        config;
    /// Whether the state is complete. Nothing is published before that.
    std::function<bool()> restored;
    std::function<placement::Permissions()> permissions;
    std::function<std::string()> drivers;  ///< as DriversText
    TopologyPolicy policy = TopologyPolicy::kNone;
    TopologyScope scope = TopologyScope::kContainer;
    /// The address and credentials of the API server; called again until it succeeds.
    std::function<StatusOr<cluster::ClusterAccess>()> access;
  };
  Publisher(Parts parts, PublishOptions options);
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// Does nothing if `what` is empty.
  void Start();
  /// Does not remove the published objects, because the node stays.
  void Stop();

  void Warn(PodMessage warning);
  /// Sets the pod to failed, with the warning's reason and message. Does nothing unless the options
  /// have `pod-failures`.
  void EndPod(PodMessage why);

  PublishStatus GetStatus() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

/// The access by the kubeconfig of `options`, or else by the pod's service account.
StatusOr<cluster::ClusterAccess> PublisherAccess(const PublishOptions& options);

}  // namespace qrm::manager
