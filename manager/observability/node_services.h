// The daemon's interface for control, metrics and health, so that these need not know its parts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "checkpoint/decision_trace.h"
#include "checkpoint/plugin_records.h"
#include "manager/admission/dry_run_report.h"
#include "manager/classes/class_choice.h"
#include "manager/observability/config_trial.h"
#include "manager/observability/node_status.h"
#include "manager/pods/unplaced_container.h"
#include "plugins/placement/permissions.h"

namespace qrm::manager {

/// Whether a plugin's records are dropped.
enum class Forget { kOnlyTell, kApply };
using ForgetDone = std::function<void(const StatusOr<checkpoint::PluginRecords>&)>;

/// Called with the former class.
using ClassDone = std::function<void(const StatusOr<std::string>&)>;

using TrialDone = std::function<void(const StatusOr<ConfigTrial>&)>;

/// Remarks about a recorded container, beside its allocation.
struct ContainerRemarks {
  std::vector<std::string> implicit_requests;  ///< requests that the configuration adds
  /// Resources that the container requests, or that all containers get, and that it runs without.
  std::vector<std::string> runs_without;
  std::string pending;   ///< why it runs with less than it requests now; empty: it has enough
  std::string rejected;  ///< why a plugin that came later rejected the container; empty: none did
  /// How the kernel's CPUs differ from the allocation, or why they are not known; empty: they were
  /// read, and agree.
  std::string unapplied;
  std::vector<std::string> class_problems;  ///< what it lacks of the classes that it asks for
};

/// The daemon as control, metrics and health see it. Threads: any.
class NodeServices {
 public:
  virtual ~NodeServices() = default;

  /// The current status; never waits for an admission.
  virtual NodeStatus Status() const = 0;

  /// One sentence for each loop that has not run for longer than any of its jobs may take. Each
  /// call posts jobs to the loops; later calls check whether they have run.
  virtual std::vector<std::string> StalledLoops() = 0;

  /// The runtime's ID of a container; empty while the container has none.
  virtual std::string RuntimeIdOf(const ContainerKey& key) const = 0;

  /// The remarks about the recorded container `name` of `pod`.
  virtual ContainerRemarks RemarksOf(const checkpoint::PodRecord& pod,
                                     const std::string& name) const = 0;

  /// The running containers that have no allocation, or not all of it because of a rejection.
  virtual std::vector<UnplacedContainer> Unplaced() const = 0;

  /// When the runtime last accepted an update of a container; absent when there was none since the
  /// start of qrmd.
  virtual std::optional<std::chrono::system_clock::time_point> LastUpdateOf(
      const ContainerKey& key) const = 0;

  /// The latest decisions, oldest first. Cost: reads them from the disk.
  virtual std::vector<checkpoint::DecisionTrace> Decisions() const = 0;

  /// The latest decisions and other events, oldest first. Cost: reads them from the disk.
  virtual std::vector<checkpoint::DecisionTrace> Events() const = 0;

  /// Keeps `event`, which is now.
  virtual void NoteEvent(const checkpoint::NodeEvent& event) = 0;

  /// The number of events since the start; Events() changes only with it. Cheap.
  virtual uint64_t DecisionCount() const = 0;

  /// Starts a reconcile as soon as no other runs; returns at once. `resource` is the plugin that
  /// asked for it, or empty.
  virtual void ReconcileSoon(const std::string& resource) = 0;

  /// Drops the records of the plugin of `resource`, which is gone for good, or only returns them.
  /// `done` runs once with the records, on a thread that must not wait. Errors: as in
  /// manager/admission/forget_plugin.h.
  virtual void ForgetPlugin(const std::string& resource, Forget how, ForgetDone done) = 0;

  /// Finds out whether the disk accepts writes now. `done` runs once, on a thread that must not
  /// wait. Errors: the disk's.
  virtual void TryDisk(std::function<void(const qrm::Status& accepted)> done) = 0;

  /// Makes the values durable that built-in plugins keep beside their allocations. `done` runs
  /// once, on a thread that must not wait. Errors: the disk's.
  virtual void KeepPluginValues(std::function<void(const qrm::Status& kept)> done) = 0;

  /// The permissions that are in force.
  virtual placement::Permissions GetPermissions() const = 0;

  /// The types of QoS-class resources, by name.
  virtual std::vector<ClassTypeStatus> Classes() const = 0;

  /// Gives a container or pod another class; `done` runs once, on a thread that must not wait.
  /// Errors: those of ClassKeeper::Set.
  virtual void SetClass(const ClassChange& change, ClassDone done) = 0;

  /// The outcome for the pod in the serialized k8s.io.api.core.v1.Pod `pod` if it arrived now;
  /// nothing changes. `done` runs once, on a thread that may wait, or at once.
  virtual void TryPod(std::string pod, const std::function<void(StatusOr<DryRunReport>)>& done) = 0;

  /// As KubeletSpecs::Announce.
  virtual StatusOr<std::string> AnnouncePod(const std::string& pod) = 0;

  /// The configuration of each built-in plugin.
  virtual std::vector<PluginPolicy> Policies() const = 0;

  /// Finds what the configuration file `name` with the content `text` would change; applies
  /// nothing. `done` runs once, on a thread that must not wait, or at once. Errors: why the file
  /// would be rejected.
  virtual void TryConfig(const std::string& text, const std::string& name, TrialDone done) = 0;
};

}  // namespace qrm::manager
