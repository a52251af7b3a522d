// Decides which classes a container gets: what it asks for, else the defaults, as far as it may
// have them and there is room.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "manager/classes/class_options.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::manager {

/// A type as its provider lists it and the operator bounds it.
struct OfferedType {
  sdk::ClassType type;
  std::shared_ptr<const ClassTypeRules> rules;

  const sdk::ClassInfo* Find(const std::string& name) const;
  /// How many may have the class at a time: the lesser of what kernel and operator say; 0: any.
  uint64_t CapacityOf(const sdk::ClassInfo& info) const;
  /// Whether the class's own rule lets those of `pod_namespace` ask for it.
  bool IsOpenTo(const std::string& name, const std::string& pod_namespace) const;
};
/// By name.
using OfferedTypes = std::vector<OfferedType>;

/// A class that a container gets, and why.
struct ChosenClass {
  std::string name;  ///< empty: it asks for none
  std::string by;    ///< "annotation KEY=VALUE", "the default of namespace x"

  bool operator==(const ChosenClass&) const = default;
};
/// What one container gets of all types; a type of which nobody said anything is not in it.
using ChosenClasses = std::map<std::string, ChosenClass>;

/// Who asks.
struct ClassAsker {
  const checkpoint::PodMeta& pod;
  std::string container;
  ContainerType type = ContainerType::kMain;
  bool restartable_init = false;
  /// It runs already: of types that cannot change, it gets nothing.
  bool runs = false;
  /// Type -> class, as who gave it a place says, and who that is: before the operator's defaults.
  StringMap defaults;
  std::string defaults_by;
};

/// Whether the asker's namespace may ask for "TYPE/CLASS" by the permissions.
using ClassPermission = std::function<bool(const std::string& name)>;

/// How many have `name` of `type` in `state`: of a container-level type, of each pod those that run
/// at the same time (all main containers and sidecars, or one that initializes); of a pod-level
/// type, pods.
uint64_t CountUsers(const checkpoint::NodeState& state, const OfferedType& type,
                    const std::string& name);

/// OK when `key` may have `name` beside those who have it in `state`.
/// Errors: kNotFound without such a class; kFailedPrecondition with its problem;
/// kResourceExhausted when it is full.
Status CheckRoom(const checkpoint::NodeState& state, const OfferedType& type,
                 const std::string& name, const ClassAsker& asker);

/// What `asker` gets of `types` beside those in `state`. A default that cannot be given is left
/// out: only what somebody asks for refuses him. A pod's first container decides its pod-level
/// classes.
/// Errors: one sentence that names type, class and annotation and lists the classes that it may
/// have: kInvalidArgument, kNotFound, kPermissionDenied, kFailedPrecondition, kResourceExhausted.
StatusOr<ChosenClasses> ChooseClasses(const OfferedTypes& types, const ClassAsker& asker,
                                      const checkpoint::NodeState& state,
                                      const ClassPermission& may_ask);

}  // namespace qrm::manager
