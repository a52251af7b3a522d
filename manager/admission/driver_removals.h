// Notifies compute drivers of removed containers, and keeps the removals that they did not confirm.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {

class Plugins;
class StateLoop;

/// A driver that fails is not called for some seconds, because each call may last to its deadline.
///
/// Threads: the state loop.
class DriverRemovals {
 public:
  /// `state` and `plugins` outlive this.
  DriverRemovals(StateLoop& state, Plugins& plugins, std::chrono::milliseconds call_deadline)
      : state_(state), plugins_(plugins), call_deadline_(call_deadline) {}

  /// The removals to send to drivers when `pod` ends, without drivers that the operator forgot.
  std::vector<sdk::ComputeRemoval> Of(const checkpoint::PodRecord& pod) const;

  /// Sends `removals`, all of one pod, to their drivers without waiting. `taken` runs on the loop
  /// when all drivers have confirmed; else the pod stays and is due later.
  void Start(std::vector<sdk::ComputeRemoval> removals, std::function<void()> taken);
  /// Sends one removal and waits; returns whether the driver confirmed it.
  bool Tell(const sdk::ComputeRemoval& removal);

  bool IsTelling(const std::string& uid) const { return told_.contains(uid); }
  /// Sends all unanswered removals again and waits; returns whether the drivers of any pod
  /// confirmed. Answers to the first calls are ignored then.
  bool Finish();

  /// Whether removals of pods that stayed are due again now; true once for each.
  bool TakeDue();
  /// The driver is running again: call it at once.
  void OnReturn(const std::string& driver) { unwilling_.erase(driver); }

 private:
  /// A pod whose removals are being sent.
  struct Told {
    uint64_t round = 0;
    std::vector<sdk::ComputeRemoval> removals;
    std::function<void()> taken;
  };

  using Removals = std::vector<sdk::ComputeRemoval>;

  bool IsLeftAlone(const std::string& driver) const;
  bool AnyLeftAlone(const Removals& removals) const;
  bool Note(const sdk::ComputeRemoval& removal, const Status& ended);
  bool NoteAll(const Removals& removals, const std::vector<Status>& answers);
  void OnAnswers(const std::string& uid, uint64_t round, const std::vector<Status>& answers);

  StateLoop& state_;
  Plugins& plugins_;
  const std::chrono::milliseconds call_deadline_;
  std::map<std::string, Told> told_;  ///< by pod
  uint64_t round_ = 0;
  std::map<std::string, Removals> stayed_;  ///< by pod; not confirmed at the latest try
  /// Drivers that did not confirm their latest removal, and until when they are not called.
  std::map<std::string, std::chrono::steady_clock::time_point> unwilling_;
};

}  // namespace qrm::manager
