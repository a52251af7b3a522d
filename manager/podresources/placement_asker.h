// Asks plugins in the background where containers' allocations are, a few calls at a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/placement.h"
#include "checkpoint/node_state.h"
#include "manager/podresources/plugin_failures.h"

namespace qrm::manager {

class Plugins;

/// Has one queue per plugin, so that a slow plugin does not delay the answers of others. Built-in
/// plugins are not asked, since the records have what they would report.
///
/// Threads: any.
class PlacementAsker {
 public:
  using StatePtr = std::shared_ptr<const checkpoint::NodeState>;

  /// Both run on any thread, and may still run after the asker is gone.
  struct Listener {
    /// Receives the report of the plugin of `resource` about a container of `pod`, which `state`
    /// keeps alive.
    std::function<void(const StatePtr& state, const checkpoint::PodRecord& pod,
                       const std::string& container, const PlacedByResource& placed)>
        on_told;
    /// The plugin is not running or was too slow, and its other questions are dropped.
    std::function<void(const std::string& resource)> on_away;
  };

  /// Calls to one plugin at once; few, because admissions come first.
  static constexpr int kAtOnce = 4;

  /// `plugins` and `errors`, counted by resource, outlive the asker and its calls.
  PlacementAsker(Plugins& plugins, prometheus::Family<prometheus::Counter>& errors,
                 std::chrono::milliseconds timeout, Listener listener);
  /// Drops all questions.
  ~PlacementAsker();
  PlacementAsker(const PlacementAsker&) = delete;
  PlacementAsker& operator=(const PlacementAsker&) = delete;

  /// Asks about all containers of `pods`, which are of `state`: the running plugins that gave them
  /// allocations, all or those of `only`. If a plugin fails, only its resources are missing; a
  /// plugin without the call is not an error. Returns at once.
  void Ask(const StatePtr& state, const std::vector<const checkpoint::PodRecord*>& pods,
           const std::set<std::string>& only = {});

  /// The plugins that failed; a plugin's next answer, or Forget, removes it.
  PluginFailures& failures();

 private:
  struct State;  // outlives the asker while a call is under way

  std::shared_ptr<State> state_;
};

}  // namespace qrm::manager
