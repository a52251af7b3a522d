// The plan for one container during an admission.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/clock.h"
#include "api/base/status.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "manager/admission/explanation.h"
#include "manager/demand/demand_source.h"
#include "manager/drivers/driver_choice.h"
#include "manager/drivers/driver_grant.h"
#include "plugins/placement/admission_options.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::checkpoint {
struct DecisionTrace;
}  // namespace qrm::checkpoint

namespace qrm::manager {

/// The compute driver's part in the plan for a container.
struct DriverPart {
  std::string resource;  ///< the driver's name among the plugins
  DriverChoice choice;
  double cpus = 0;  ///< requested
  DriverOffer offer;
  HintList hints;     ///< computed from the offer
  TopologyHint hint;  ///< merged
  sdk::ComputeGrant grant;
};

/// The plan for one container, filled step by step. Threads: one.
struct Draft {
  const placement::ContainerDemand& demand;
  const ContainerKey key;
  const checkpoint::ContainerRecord* known;  ///< of an earlier admission; or null
  const Deadline deadline;
  /// The node's state, with the planned allocations of the pod's earlier containers.
  std::shared_ptr<const checkpoint::NodeState> state;

  /// Its compute driver has asked to change the CPUs that it has.
  bool is_reviewed = false;
  /// Plugins only keep it off exclusive resources; it still gets classes.
  bool is_skipped = false;
  /// Scope pod: it represents all containers of the pod together.
  bool is_whole_pod = false;
  /// Scope pod: the merged hints of all containers of the pod together; or null.
  const Explanation* pod = nullptr;
  /// Scope pod: the nodes of the pod's containers with allocations; empty if there are none.
  NumaMask pod_nodes;

  std::optional<DriverPart> driver;        ///< places it instead of the cpu plugin
  std::vector<ContainerRequest> requests;  ///< one for each plugin to ask
  std::set<std::string> aligned;           ///< resources of `requests` with topology alignment
  std::vector<std::string> allocated;      ///< plugins that were asked to allocate
  std::vector<std::string> fixed;          ///< requests that cannot change in the running container
  std::vector<std::string> too_late;    ///< plugins that gave what a running container cannot take
  std::vector<std::string> unanswered;  ///< plugins that answered without an allocation
  std::vector<std::string> impossible;  ///< plugin processes that hint at no node at all
  std::map<std::string, checkpoint::Origin> origins;  ///< of the explanation's allocations
  std::string failed_resource;        ///< the resource of the failed step; may be empty
  bool bad_answer = false;            ///< the plugin of `failed_resource` answered wrongly
  sdk::ClassOptions class_options{};  ///< what the runtime has to set for its classes
  Explanation explanation{};

  /// Whether a plugin or driver is asked for an allocation.
  bool IsServed() const { return !requests.empty() || driver.has_value(); }
  /// Whether there is anything to commit for it.
  bool GetsSomething() const {
    return IsServed() || (known == nullptr && !explanation.classes.empty());
  }
  /// The plugin that answered wrongly, if one did: it may have given `failed_resource` together
  /// with its own resource.
  const std::string& Blamed() const;
};

/// Scope pod: the demand and draft that represent all containers of a pod together; without a
/// draft, each represents itself.
struct Whole {
  placement::ContainerDemand demand;
  std::unique_ptr<Draft> draft;
};

/// Whether the plan repeats the record of a running container: the plugins that were asked answered
/// without an allocation, or its driver wants no other CPUs.
bool IsNothingNew(const Draft& draft);

/// Takes out of `options` the shared CPUs that an owner of others is about to leave; the container
/// of `draft`, with `allocations`, gets them with the next reconcile. It keeps them if it would
/// have no others.
void KeepOffCpusBeingLeft(const Draft& draft, const AllocationByResource& allocations,
                          RunOptions& options);

/// The NUMA nodes of the containers of `pod` except `container`.
NumaMask NodesOfOthers(const checkpoint::PodRecord& pod, const std::string& container);

/// Names in each draft's explanation the containers of the other drafts.
void NameTogether(std::vector<Draft>& drafts);

/// The record of a planned container, which is skipped for the reason `skipped` if that is set.
checkpoint::ContainerRecord RecordOf(const Draft& draft, const std::string& skipped);

/// Why a container is skipped if no plugin is asked about it.
std::string ReasonUnserved(const Draft& draft);

/// The trace of the decision about `draft`, made at `time`, without its document.
checkpoint::DecisionTrace TraceOf(const Draft& draft, std::chrono::system_clock::time_point time);

/// Why `failed` was rejected, in one word for metrics: "plugin_fault" (its plugin answered
/// wrongly), "plugin_away", "too_slow", "no_room", "request" (the pod must ask for something else)
/// or "other".
std::string_view RefusalReason(const Status& cause, const Draft& failed);

/// The container of `asked` if its pod is to end because of `failed`, instead of being retried: by
/// the rules of the draft's driver or else of `options`, if `reason`, as RefusalReason, will not
/// pass by itself.
std::optional<ContainerKey> PodToEnd(const placement::ContainerDemand& asked, const Draft& failed,
                                     std::string_view reason,
                                     const placement::AdmissionOptions& options);

/// `cause` as the error of the creation of `asked`. `failed` is the draft that failed: of `asked`
/// itself, of a container placed with it, or of all of them together.
Status Rejection(const Status& cause, const placement::ContainerDemand& asked, const Draft& failed,
                 const Whole& whole);

/// Removes from its allocations what the running container of `draft` was created without and can
/// no longer get, so that other containers can have it. A compute driver's allocation stays: its
/// CPUs can be applied now, and its variables to the next instance, as the explanation says.
void LeaveOutWhatCameTooLate(Draft& draft);

/// Container -> plugins that gave what it can no longer take; each is logged.
std::map<std::string, std::vector<std::string>> GivenTooLate(const std::vector<Draft>& drafts);

/// The parts of `demand` that a decision's document contains.
placement::ContainerDemand SubjectOf(const placement::ContainerDemand& demand);

}  // namespace qrm::manager
