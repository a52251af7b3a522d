// Keeps the resources of a stopped plugin for a grace period.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "api/resource.h"

namespace qrm::manager {

/// While a plugin restarts, its resources must not disappear from the cluster.
///
/// Threads: one.
class KnownResources {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit KnownResources(std::chrono::milliseconds grace) : grace_(grace) {}

  /// Adds qrmd's resources on a Node from before this process, as if they were offered now. Newer
  /// data is not replaced. `amounts` has no amounts by NUMA node.
  void Recall(const StringMap& amounts, Time now);

  /// `told`, and the resources that were offered within the grace period before `now`.
  AllocatableByResource Join(const AllocatableByResource& told, Time now);

 private:
  struct Known {
    AllocatableResource resource;
    Time told_at;
  };

  const std::chrono::milliseconds grace_;
  std::map<std::string, Known> known_;
};

}  // namespace qrm::manager
