// Follows the runtime over CRI while qrmd is not attached over NRI, and decides when
// an unlisted pod is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
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

/// Whether a list is from the runtime that has the known pods, or perhaps from another one.
enum class ListTrust { kOurs, kMaybeAnothers };

/// Remembers since when each known pod has been missing, and the cgroups of its containers.
///
/// Threads: one.
class GonePods {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `read_cpuset` returns kNotFound for a cgroup that is gone; empty: cgroups are not read.
  GonePods(CpusetSource read_cpuset, std::chrono::milliseconds gone_after);

  /// Forgets everything.
  void Reset();
  /// A container of the pod has this cgroup.
  void NoteCgroup(const std::string& pod_uid, const std::string& cgroups_path);

  /// The pods of `known` that are not in `listed` but may still exist at `now`. A list that is
  /// empty, or perhaps another runtime's, proves nothing without the cgroups.
  std::set<std::string> Doubtful(const std::set<std::string>& known,
                                 const std::set<std::string>& listed, Time now,
                                 ListTrust trust = ListTrust::kOurs);

 private:
  enum class Evidence { kNone, kGone, kThere };
  Evidence EvidenceOf(const std::string& pod_uid) const;
  bool MayBeThere(const std::string& pod_uid, bool list_proves, Time now);

  const CpusetSource read_cpuset_;
  const std::chrono::milliseconds gone_after_;
  std::map<std::string, Time> missing_since_;
  std::map<std::string, std::set<std::string>> cgroups_;
};

/// The pods and containers that the runtime listed.
struct Observation {
  std::vector<RuntimePod> pods;
  /// Those that are created or run. Containers that are not live yet come with their resources, and
  /// with the kernel's cpuset instead of the runtime's.
  std::vector<RuntimeContainer> containers;
  /// UIDs of pods that were not listed but may still exist.
  std::set<std::string> doubtful;
  /// As LiveContainers::UnknownToCri.
  std::set<std::string> unknown_to_cri;
};

/// Receives what the observer finds. Threads: the I/O loop.
class ObservationListener {
 public:
  virtual ~ObservationListener() = default;
  virtual void OnObserved(Observation seen) = 0;
};

/// The observer's state.
struct ObserverStatus {
  bool active = false;      ///< NRI is not available
  bool working = false;     ///< active, and the latest lists were answered
  bool has_events = false;  ///< the runtime sends events; else it is polled
  uint64_t looks = 0;       ///< complete lists
  std::string problem;      ///< why it is not working: one sentence; empty when it is
};

/// Lists pods and containers when it begins, on every event of the runtime and every period. An
/// event only triggers a look, and its contents are not used: lost, repeated and reordered events
/// do no harm.
///
/// A pod that is missing from a list may still exist: runtimes that restart answer too early. It is
/// doubtful until it has been missing for `gone_after` and none of its containers has a cgroup any
/// more. A list without pods proves nothing, nor does a list of another runtime than NRI's. An
/// error changes nothing.
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

  /// NRI is not available: the observer begins if NRI does not return within the grace.
  void OnNriAway();
  /// Ends the observer, and drops the look under way.
  void OnNriBack();
  /// The same, for good.
  void Stop();

  [[nodiscard]] ObserverStatus GetStatus() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
