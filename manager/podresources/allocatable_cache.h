// Caches the node's allocatable resources, as the plugins last reported them. It is refreshed in
// the background, so that readers never wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "manager/podresources/pod_resources_answers.h"

namespace prometheus {
class Counter;
template <typename T>
class Family;
}  // namespace prometheus

namespace qrm::manager {

class Plugins;

/// Threads: any.
class AllocatableCache {
 public:
  /// `errors`, counted by resource, and `plugins` outlive the cache.
  AllocatableCache(Plugins& plugins, prometheus::Family<prometheus::Counter>& errors);

  /// Asks all plugins; their answers replace the cached ones. If a plugin fails, only its resources
  /// are missing. Of two rounds at once, the one that began later counts.
  void Refresh(std::chrono::steady_clock::duration timeout);

  /// Refreshes if the latest round began longer than `max_age` ago.
  void RefreshIfOlder(std::chrono::steady_clock::duration max_age,
                      std::chrono::steady_clock::duration timeout);

  /// The plugins that failed in the latest round.
  std::vector<std::string> Problems() const;

  /// Null until the first round is over.
  std::shared_ptr<const AllocatableByResource> Load() const;

 private:
  struct State;  // outlives the cache while a round is under way

  Plugins& plugins_;
  std::shared_ptr<State> state_;
};

}  // namespace qrm::manager
