// Keeps the API server's objects about this node at what the state says.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/resource.h"
#include "cluster/access.h"
#include "manager/classes/class_choice.h"
#include "manager/observability/node_status.h"
#include "manager/publish/publish_options.h"
#include "manager/publish/refusal_events.h"
#include "manager/state/state_loop.h"
#include "plugins/placement/permissions.h"
#include "topology/machine.h"
#include "topology/merge.h"

namespace qrm::manager {

/// Compares, every interval, the published state with the objects as a watch shows them, and writes
/// those that differ, in one request each: many changes at once are one write, no change is none,
/// and what others undo is put back. Nothing waits for it: it has a thread of its own.
///
/// Threads: any; Start and Stop from one.
class Publisher {
 public:
  /// All outlive the publisher.
  struct Parts {
    const Snapshots& snapshots;
    const Machine& machine;
    /// What the plugins offer; null until they have told.
    std::function<std::shared_ptr<const AllocatableByResource>()> allocatable;
    std::function<std::shared_ptr<const OfferedTypes>()> types;
    /// What others place pods on this node by, while CPUs `offline` are not there.
    std::function<StatusOr<std::string>(const checkpoint::NodeState&, const CpuSet& offline)>
        config;
    /// Whether the state is complete; nothing is published before.
    std::function<bool()> restored;
    placement::Permissions permissions;
    TopologyPolicy policy = TopologyPolicy::kNone;
    TopologyScope scope = TopologyScope::kContainer;
    /// How the API server is reached; asked again until it tells.
    std::function<StatusOr<cluster::ClusterAccess>()> access;
  };
  Publisher(Parts parts, PublishOptions options);
  /// Stops.
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// Does nothing when nothing is to be published.
  void Start();
  /// Leaves what was published: this node lives on.
  void Stop();

  void OnRefused(Refusal refusal);

  PublishStatus GetStatus() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

/// By the kubeconfig of `options`, or as a pod is given.
StatusOr<cluster::ClusterAccess> PublisherAccess(const PublishOptions& options);

}  // namespace qrm::manager
