// What a change of classes does to the state, and who is to have which class by it.
#pragma once

#include <set>
#include <string>

#include "api/base/status.h"
#include "checkpoint/node_state.h"
#include "manager/classes/class_choice.h"
#include "manager/classes/class_status.h"
#include "manager/classes/class_worker.h"
#include "manager/runtime/live_containers.h"

namespace qrm::manager {

/// A change that may be made.
struct PlannedClassChange {
  checkpoint::Change change;
  ContainerKey key;    ///< of the container; of a pod-level type, without one
  std::string former;  ///< empty: none
};

/// Errors: kNotFound without such a pod, container, type or class; kInvalidArgument when several
/// pods are meant or the type is of the other level; kFailedPrecondition for a type that cannot
/// change or a class that cannot be given; kResourceExhausted when it is full.
StatusOr<PlannedClassChange> PlanClassChange(const checkpoint::NodeState& state,
                                             const OfferedTypes& types, const ClassChange& change);

/// Where the runtime has the container of `key`, or of a key without one any container of the pod.
/// Errors: kNotFound.
StatusOr<sdk::ClassTarget> FindClassTarget(const ContainerKey& key, const LiveContainers& live);

/// Everyone whom the runtime has and who has a class of `type` by `state`.
WantedClasses WantedOf(const OfferedType& type, const checkpoint::NodeState& state,
                       const LiveContainers& live);

/// The classes of `type` that anyone has by `state`, whether he runs or not.
std::set<std::string> ClassesInUse(const std::string& type, const checkpoint::NodeState& state);

}  // namespace qrm::manager
