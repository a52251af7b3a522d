// One container's part of an admission under way.
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
#include "manager/drivers/driver_offer.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::checkpoint {
struct DecisionTrace;
}  // namespace qrm::checkpoint

namespace qrm::manager {

/// What a compute driver has to do with a container.
struct DriverPart {
  std::string resource;  ///< the driver, among the plugins
  DriverChoice choice;
  double cpus = 0;  ///< requested
  DriverOffer offer;
  HintList hints;     ///< of the offer
  TopologyHint hint;  ///< merged
  sdk::ComputeGrant grant;
};

/// The plan for one container, filled step by step. Threads: one.
struct Draft {
  const placement::ContainerDemand& demand;
  const ContainerKey key;
  const checkpoint::ContainerRecord* known;  ///< of an earlier admission; or null
  const Deadline deadline;
  /// The node's state, with what the pod's earlier containers are to get.
  std::shared_ptr<const checkpoint::NodeState> state;

  /// Scope pod: it stands for all of the pod's containers together.
  bool is_whole_pod = false;
  /// Scope pod: what was merged for all of the pod's containers together; or null.
  const Explanation* pod = nullptr;
  /// Scope pod: the nodes of the pod's containers that have their place; empty: of none.
  NumaMask pod_nodes;

  std::optional<DriverPart> driver;        ///< that places it in place of the cpu plugin
  std::vector<ContainerRequest> requests;  ///< one for each plugin to ask
  std::set<std::string> aligned;           ///< resources of `requests` with topology alignment
  std::vector<std::string> allocated;      ///< plugins that were asked to allocate
  std::vector<std::string> fixed;          ///< requests of which a running container has the former
  std::vector<std::string> too_late;  ///< plugins that gave what a running container cannot take
  std::map<std::string, checkpoint::Origin> origins;  ///< of the explanation's allocations
  std::string failed_resource;                        ///< that a failed step is about; may be empty
  bool bad_answer = false;  ///< the plugin of `failed_resource` answered wrongly
  Explanation explanation{};

  /// Whether anybody is asked to give it something.
  bool IsServed() const { return !requests.empty() || driver.has_value(); }
  /// Whether there is anything to commit for it.
  bool GetsSomething() const {
    return IsServed() || (known == nullptr && !explanation.classes.empty());
  }
  /// The plugin that answered wrongly, when one did: it may have given `failed_resource` with its
  /// own.
  const std::string& Blamed() const;
};

/// Scope pod: the demand and draft that represent all containers of a pod together; without a
/// draft, each represents itself.
struct Whole {
  placement::ContainerDemand demand;
  std::unique_ptr<Draft> draft;
};

/// Names in each draft's explanation the containers of the others.
void NameTogether(std::vector<Draft>& drafts);

/// Why a container is left alone for which no plugin is asked.
std::string ReasonUnserved(const Draft& draft);

/// The trace of the decision about `draft`, made at `time`, but for its document.
checkpoint::DecisionTrace TraceOf(const Draft& draft, std::chrono::system_clock::time_point time);

/// Why `failed` was refused, in one word for metrics: "plugin_fault" (its plugin answered wrongly),
/// "plugin_away", "too_slow", "no_room", "request" (the pod must ask for something else) or
/// "other".
std::string_view RefusalReason(const Status& cause, const Draft& failed);

/// `cause` as the sentence that the creation of `asked` fails with, when `failed` is the part that
/// did: itself, a container that is placed with it, or all of them together.
Status Rejection(const Status& cause, const placement::ContainerDemand& asked, const Draft& failed,
                 const Whole& whole);

}  // namespace qrm::manager
