// Tells compute drivers that containers are gone, and knows which of them have not taken it.
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

/// A driver that fails is left alone for some seconds, for each try may last to its deadline.
///
/// Threads: the state loop.
class DriverRemovals {
 public:
  /// `state` and `plugins` outlive this.
  DriverRemovals(StateLoop& state, Plugins& plugins, std::chrono::milliseconds call_deadline)
      : state_(state), plugins_(plugins), call_deadline_(call_deadline) {}

  /// What drivers are to be told of the end of `pod`. A driver that the operator had forgotten is
  /// left out.
  std::vector<sdk::ComputeRemoval> Of(const checkpoint::PodRecord& pod) const;

  /// Tells drivers of `removals`, all of one pod, without waiting. `taken` runs on the loop when
  /// they have all taken it; else the pod stays, and is due later.
  void Start(std::vector<sdk::ComputeRemoval> removals, std::function<void()> taken);
  /// The same for one removal, and waits; whether it was taken.
  bool Tell(const sdk::ComputeRemoval& removal);

  bool IsTelling(const std::string& uid) const { return told_.contains(uid); }
  /// Waits for all that are being told, and tells whether one of them has taken it. An answer to
  /// the first telling comes too late then.
  bool Finish();

  /// Whether pods stayed whose drivers are to be told again now; says so once of each.
  bool TakeDue();
  /// The driver is back, and is no longer left alone.
  void OnReturn(const std::string& driver) { unwilling_.erase(driver); }

 private:
  /// A pod whose drivers are being told.
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
  std::map<std::string, Removals> stayed_;  ///< by pod; not taken at the latest telling
  /// Drivers that did not take their latest removal, and until when they are left alone.
  std::map<std::string, std::chrono::steady_clock::time_point> unwilling_;
};

}  // namespace qrm::manager
