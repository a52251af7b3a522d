// Plans changes of classes in the state, and lists the classes that containers should have.
#pragma once

#include <set>
#include <string>

#include "api/base/status.h"
#include "checkpoint/node_state.h"
#include "manager/classes/class_choice.h"
#include "manager/classes/class_worker.h"
#include "manager/runtime/live_containers.h"

namespace qrm::manager {

/// A change that has been checked.
struct PlannedClassChange {
  checkpoint::Change change;
  ContainerKey key;    ///< for a pod-level type, without container
  std::string former;  ///< empty: none
  StringMap before;    ///< container -> class on record; without those that have no entry
};

/// Errors: kNotFound without such a pod, container, type or class; kInvalidArgument if several pods
/// match or the type is of the other level; kFailedPrecondition for a type that cannot change or a
/// class that cannot be given; kResourceExhausted if the class is full.
StatusOr<PlannedClassChange> PlanClassChange(const checkpoint::NodeState& state,
                                             const OfferedTypes& types, const ClassChange& change);

/// The runtime's container of `key`; for a key without container, the pod with its cgroup.
/// Errors: kNotFound.
StatusOr<sdk::ClassTarget> FindClassTarget(const ContainerKey& key, const LiveContainers& live);

/// The containers (or pods) that the runtime has and that have a class of `type` in `state`, or ask
/// for one that they were not given.
WantedClasses WantedOf(const OfferedType& type, const checkpoint::NodeState& state,
                       const LiveContainers& live);

/// The classes of `type` in `state`, also of containers that do not run.
std::set<std::string> ClassesInUse(const std::string& type, const checkpoint::NodeState& state);

}  // namespace qrm::manager
