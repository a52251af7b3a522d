// What the edges (control, metrics, health) ask of the daemon, so that none of them knows its
// parts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "checkpoint/plugin_records.h"
#include "manager/admission/dry_run_report.h"
#include "manager/classes/class_status.h"
#include "manager/observability/config_trial.h"
#include "manager/observability/node_status.h"
#include "plugins/placement/permissions.h"

namespace qrm::manager {

/// Whether a plugin's records are dropped.
enum class Forget { kOnlyTell, kApply };
using ForgetDone = std::function<void(const StatusOr<checkpoint::PluginRecords>&)>;

/// Called with the former class.
using ClassDone = std::function<void(const StatusOr<std::string>&)>;

using TrialDone = std::function<void(const StatusOr<ConfigTrial>&)>;

/// What is to be said of a container on record beside what it holds.
struct ContainerRemarks {
  std::vector<std::string> implicit_requests;  ///< those that the configuration makes
  /// It runs, and has nothing of these resources, which it requests or which all get.
  std::vector<std::string> runs_without;
  std::string pending;  ///< why it runs with less than it requests now; empty: it does not
};

/// The daemon as the edges see it. Threads: any.
class NodeServices {
 public:
  virtual ~NodeServices() = default;

  /// As it is now; never waits for an admission.
  virtual NodeStatus Status() const = 0;

  /// A sentence on each loop that has not turned for longer than any work of it may take, as far as
  /// that is known from earlier calls: each call asks the loops to turn.
  virtual std::vector<std::string> StalledLoops() = 0;

  /// The runtime's id of a container; empty when it has none now.
  virtual std::string RuntimeIdOf(const ContainerKey& key) const = 0;

  /// Of the container `name` of `pod`, which is on record.
  virtual ContainerRemarks RemarksOf(const checkpoint::PodRecord& pod,
                                     const std::string& name) const = 0;

  /// When the runtime last took an update of a container, as far as this process remembers.
  virtual std::optional<std::chrono::system_clock::time_point> LastUpdateOf(
      const ContainerKey& key) const = 0;

  /// The latest decisions, oldest first. Cost: reads them from the disk.
  virtual std::vector<checkpoint::DecisionTrace> Decisions() const = 0;

  /// How many decisions there were since the start: Decisions() changes with it. Cheap.
  virtual uint64_t DecisionCount() const = 0;

  /// Starts a reconcile as soon as none is running; returns at once. `resource` is the plugin that
  /// asked, or empty.
  virtual void ReconcileSoon(const std::string& resource) = 0;

  /// Drops what is on record of the plugin of `resource`, which is gone for good, or only tells
  /// what that is. `done` runs once with it, on a thread that must not wait. Errors: those of
  /// manager/admission/forget_plugin.h.
  virtual void ForgetPlugin(const std::string& resource, Forget how, ForgetDone done) = 0;

  /// Makes durable what built-in plugins keep beside their allocations; `done` runs once, on a
  /// thread that must not wait. Errors: the disk's.
  virtual void KeepPluginValues(std::function<void(const qrm::Status& kept)> done) = 0;

  /// Who may ask for what; as long as this object.
  virtual const placement::Permissions& GetPermissions() const = 0;

  /// The types of QoS-class resources, by name.
  virtual std::vector<ClassTypeStatus> Classes() const = 0;

  /// Gives a container or pod another class; `done` runs once, on a thread that must not wait.
  /// Errors: those of ClassKeeper::Set.
  virtual void SetClass(const ClassChange& change, ClassDone done) = 0;

  /// What would become of the pod in the serialized k8s.io.api.core.v1.Pod `pod` if it came now;
  /// nothing changes. `done` runs once, on a thread that may wait, or at once.
  virtual void TryPod(std::string pod, const std::function<void(StatusOr<DryRunReport>)>& done) = 0;

  /// As KubeletSpecs::Announce.
  virtual StatusOr<std::string> AnnouncePod(const std::string& pod) = 0;

  /// What the built-in plugins are configured to do.
  virtual std::vector<PluginPolicy> Policies() const = 0;

  /// What the configuration file `name` that holds `text` would change; nothing does. `done` runs
  /// once, on a thread that must not wait, or at once. Errors: why the file would be refused.
  virtual void TryConfig(const std::string& text, const std::string& name, TrialDone done) = 0;
};

}  // namespace qrm::manager
