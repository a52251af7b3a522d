// Caches the node's allocatable resources, as the plugins last reported them. It is refreshed in
// the background, so that readers never wait. The last good answer of a plugin that fails is kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
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
  using Duration = std::chrono::steady_clock::duration;
  using Known = std::shared_ptr<const AllocatableByResource>;

  /// The answer of a plugin that fails is kept for `keep` after it was given. `errors`, counted by
  /// resource, and `plugins` outlive the cache.
  AllocatableCache(Plugins& plugins, prometheus::Family<prometheus::Counter>& errors,
                   Duration keep);

  /// Asks the live plugins, and those whose answers are kept. Of two rounds at once, the one that
  /// began later counts.
  void Refresh(Duration timeout);

  /// Refreshes if the latest round began longer than `max_age` ago.
  void RefreshIfOlder(Duration max_age, Duration timeout);

  /// The plugins that failed in the latest round.
  std::vector<std::string> Problems() const;

  /// By plugin: how old its answer in Load() is while the plugin fails; 0 while it answers. Units:
  /// seconds.
  std::map<std::string, double> Ages() const;

  /// Also of plugins that fail. Null until the first round is over.
  Known Load() const;
  /// Only of plugins that answered in the latest round. Null until the first round is over.
  Known LoadLatest() const;

 private:
  struct State;  // outlives the cache while a round is under way

  Plugins& plugins_;
  std::shared_ptr<State> state_;
};

}  // namespace qrm::manager
