// Follows the runtime over CRI while it does not call us over NRI.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/base/io_context.h"
#include "manager/pods/pods_options.h"
#include "manager/reconcile/drift.h"
#include "manager/runtime/cri/cri_client.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {

/// What the runtime listed.
struct Observation {
  std::vector<RuntimePod> pods;
  /// Those that are created or run. What is not among the live ones yet has its resources, with the
  /// kernel's cpuset in place of the runtime's.
  std::vector<RuntimeContainer> containers;
  /// UIDs of pods that were not listed but may still be there.
  std::set<std::string> doubtful;
  /// As LiveContainers::UnknownToCri.
  std::set<std::string> unknown_to_cri;
};

/// Is told what the observer sees. Threads: the I/O loop.
class ObservationListener {
 public:
  virtual ~ObservationListener() = default;
  virtual void OnObserved(Observation seen) = 0;
};

/// The observer's state.
struct ObserverStatus {
  bool active = false;      ///< NRI is away
  bool working = false;     ///< active, and the latest lists were answered
  bool has_events = false;  ///< the runtime tells of changes; else it is polled
  uint64_t looks = 0;       ///< complete lists
  std::string problem;      ///< why it is not working: one sentence; empty when it is
};

/// Lists pods and containers when it begins, on every event of the runtime and every period: an
/// event tells when to look, and never what is there, so that lost, repeated and reordered ones do
/// no harm.
///
/// A pod that is missing from a list may still be there: runtimes that restart answer too early. It
/// is doubtful until it has been missing for `gone_after` and none of its containers has a cgroup
/// any more; a list without any pod alone proves nothing, nor does one of another runtime than NRI
/// told of. An error changes nothing.
///
/// Threads: the I/O loop, or before it runs; GetStatus any.
class Observer {
 public:
  /// All parts outlive the observer. `read_cpuset` may be empty.
  struct Parts {
    boost::asio::io_context& io;
    ContainerRuntime& runtime;
    const Snapshots& state;
    LiveContainers& live;
    CpusetSource read_cpuset;
    ObservationListener& listener;
  };
  Observer(Parts parts, ObserverOptions options);
  ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// NRI is away, or was never there: the observer begins when it is not back after the grace.
  void OnNriAway();
  /// Ends the observer; what is under way is dropped.
  void OnNriBack();
  /// The same, for good.
  void Stop();

  [[nodiscard]] ObserverStatus GetStatus() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
