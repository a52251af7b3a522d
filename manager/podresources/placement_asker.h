// Asks plugins what containers hold by place, in the background and a few at a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/node_state.h"
#include "manager/podresources/answers.h"
#include "manager/registry/plugins.h"

namespace prometheus {
class Counter;
template <typename T>
class Family;
}  // namespace prometheus

namespace qrm::manager {

/// Built-in plugins are not asked: what they would tell stands in our records.
/// Threads: any.
class PlacementAsker {
 public:
  using StatePtr = std::shared_ptr<const checkpoint::NodeState>;
  /// Learns what was told of `pod`, which the argument's state keeps alive. Runs on any thread, and
  /// may still run after the asker is gone.
  using Told = std::function<void(const StatePtr& state, const checkpoint::PodRecord& pod,
                                  const PodPlacements& placements)>;

  /// Calls under way at once: admissions come first.
  static constexpr int kAtOnce = 8;

  /// `plugins` and `errors`, counted by resource, outlive the asker and its calls.
  PlacementAsker(Plugins& plugins, prometheus::Family<prometheus::Counter>& errors,
                 std::chrono::milliseconds timeout, Told told);
  /// Asks no more.
  ~PlacementAsker();
  PlacementAsker(const PlacementAsker&) = delete;
  PlacementAsker& operator=(const PlacementAsker&) = delete;

  /// Asks about all containers of `pods`, which are of `state`, the live plugins that gave them
  /// something: all, or those of `only`. A plugin that fails costs its own resources only; one
  /// without the call is no error. Returns at once.
  void Ask(const StatePtr& state, const std::vector<const checkpoint::PodRecord*>& pods,
           const std::set<std::string>& only = {});

 private:
  struct State;  // outlives the asker while a call is under way

  std::shared_ptr<State> state_;
};

}  // namespace qrm::manager
