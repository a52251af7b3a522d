// Keeps what a plugin offers known for a while after the plugin is gone.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "api/resource.h"

namespace qrm::manager {

/// A plugin that is started anew must not take its resources out of the cluster's sight meanwhile.
///
/// Threads: one.
class KnownResources {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit KnownResources(std::chrono::milliseconds grace) : grace_(grace) {}

  /// What a Node says is ours, from before this process: it counts as told now, where nothing newer
  /// is known. The parts of NUMA nodes are not in it.
  void Recall(const StringMap& amounts, Time now);

  /// `told`, and what was told within the grace period before `now`.
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
