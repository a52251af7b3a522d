// Asks plugins in the background, a few calls at a time, what containers hold by place.
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

/// One queue per plugin, so that one that is slow delays nobody else's answers. Built-in plugins
/// are not asked, since our records have what they would report.
///
/// Threads: any.
class PlacementAsker {
 public:
  using StatePtr = std::shared_ptr<const checkpoint::NodeState>;

  /// Both run on any thread, and may still run after the asker is gone.
  struct Listener {
    /// Learns what the plugin of `resource` told of a container of `pod`, which `state` keeps
    /// alive.
    std::function<void(const StatePtr& state, const checkpoint::PodRecord& pod,
                       const std::string& container, const PlacedByResource& placed)>
        on_told;
    /// The plugin was away or too slow, and is not asked what else was to be asked.
    std::function<void(const std::string& resource)> on_away;
  };

  /// Calls of one plugin under way at once: admissions come first.
  static constexpr int kAtOnce = 4;

  /// `plugins` and `errors`, counted by resource, outlive the asker and its calls.
  PlacementAsker(Plugins& plugins, prometheus::Family<prometheus::Counter>& errors,
                 std::chrono::milliseconds timeout, Listener listener);
  /// Asks no more.
  ~PlacementAsker();
  PlacementAsker(const PlacementAsker&) = delete;
  PlacementAsker& operator=(const PlacementAsker&) = delete;

  /// Asks about all containers of `pods`, which are of `state`, the live plugins that gave them
  /// something: all, or those of `only`. A plugin that fails costs its own resources only; one
  /// without the call is no error. Returns at once.
  void Ask(const StatePtr& state, const std::vector<const checkpoint::PodRecord*>& pods,
           const std::set<std::string>& only = {});

  /// The plugins that failed, which forget themselves with their next answer or with Forget.
  PluginFailures& failures();

 private:
  struct State;  // outlives the asker while a call is under way

  std::shared_ptr<State> state_;
};

}  // namespace qrm::manager
