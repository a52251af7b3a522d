// Chooses the classes of a container: those that it asks for, else the defaults, within permissions
// and capacity. The status of classes for observers, and their requests to change one.
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

/// A type as its provider lists it, with the operator's rules.
struct OfferedType {
  sdk::ClassType type;
  std::shared_ptr<const ClassTypeRules> rules;
  bool is_retired = false;  ///< class-types does not have it any more; values may be left

  const sdk::ClassInfo* Find(const std::string& name) const;
  /// How many may have the class at a time: the lower of the kernel's and the operator's limit;
  /// 0: any number.
  uint64_t CapacityOf(const sdk::ClassInfo& info) const;
  /// Whether the class's own rule allows `pod` to ask for it. The API server has checked the rights
  /// that only it can check, except of static pods.
  bool IsOpenTo(const std::string& name, const checkpoint::PodMeta& pod) const;
};
/// By name.
using OfferedTypes = std::vector<OfferedType>;

/// A class that a container gets, and why.
struct ChosenClass {
  std::string name;  ///< empty: it asks for no class
  std::string by;    ///< "annotation KEY=VALUE", "the default of namespace x"

  bool operator==(const ChosenClass&) const = default;
};
/// Type -> class of one container, without types that have neither a request nor a default.
using ChosenClasses = std::map<std::string, ChosenClass>;

/// Type -> class, as it is recorded.
StringMap ToRecord(const ChosenClasses& classes);

/// Whether kubelet has the pod from a file or a URL, so that the API server did not check it.
bool IsStaticPod(const checkpoint::PodMeta& pod);

/// The container that asks for classes.
struct ClassAsker {
  const checkpoint::PodMeta& pod;
  std::string container;
  ContainerType type = ContainerType::kMain;
  bool restartable_init = false;
  /// It runs already: it gets no class of types that cannot change.
  bool runs = false;
  /// Its pod is skipped: of the defaults, it gets those of its namespace only.
  bool is_skipped = false;
  /// Type -> class by the plugins' allocations, which precede the operator's defaults, and the
  /// source of these.
  StringMap defaults;
  std::string defaults_by;
};

/// Whether permissions allow the asker's namespace to ask for "TYPE/CLASS".
using ClassPermission = std::function<bool(const std::string& name)>;

/// The type of that name; null: there is none.
const OfferedType* FindType(const OfferedTypes& types, const std::string& name);

/// The class of `type` on record; empty: none.
std::string ClassOf(const checkpoint::ContainerRecord& record, const std::string& type);

/// The number of users of class `name` of `type` in `state`. For a pod-level type, pods. For a
/// container-level type, the containers of each pod that run at the same time: all main containers
/// and sidecars, or one init container.
uint64_t CountUsers(const checkpoint::NodeState& state, const OfferedType& type,
                    const std::string& name);

/// OK if `asker` can have class `name` in addition to its users in `state`.
/// Errors: kNotFound without such a class; kFailedPrecondition with its problem;
/// kResourceExhausted if it is full.
Status CheckRoom(const checkpoint::NodeState& state, const OfferedType& type,
                 const std::string& name, const ClassAsker& asker);

/// OK if `pod` may ask for the classes of `types` that its annotations name, also for those that
/// another annotation overrides, and that a runtime may read. Errors: kPermissionDenied;
/// kInvalidArgument for a key, a type or a value that no class can have.
Status CheckMayAsk(const OfferedTypes& types, const checkpoint::PodMeta& pod,
                   const ClassPermission& may_ask);

/// OK if no class of `others` (type -> class) sets a value in the same cgroup that class `name` of
/// `type` sets, too. Errors: kInvalidArgument with the other class.
Status CheckRivals(const OfferedTypes& types, const OfferedType& type, const std::string& name,
                   const StringMap& others);

/// The classes of `types` that `asker` gets in addition to the users in `state`. A default that
/// cannot be given is omitted; only an explicit request is rejected. A pod's first container
/// decides its pod-level classes.
/// Errors: one sentence that names type, class and annotation and lists the available classes:
/// kInvalidArgument, kNotFound, kPermissionDenied, kFailedPrecondition, kResourceExhausted.
StatusOr<ChosenClasses> ChooseClasses(const OfferedTypes& types, const ClassAsker& asker,
                                      const checkpoint::NodeState& state,
                                      const ClassPermission& may_ask);

/// Another class for a container, or for a pod as a whole.
struct ClassChange {
  std::string pod;        ///< "name", "namespace/name" or a UID
  std::string container;  ///< empty for a pod-level type
  std::string type;
  std::string name;  ///< empty: none
  std::string by;    ///< who asked for it: "uid 0, pid 4711"
};

/// A class that does not exist any more, and why a container still has values of it.
struct LeftClass {
  std::string name;
  std::string why;

  bool operator==(const LeftClass&) const = default;
};

/// The results of one type's provider.
struct ClassWork {
  uint64_t repairs = 0;                     ///< corrected drifts
  std::vector<std::string> problems;        ///< containers without all values of their class, why
  std::vector<sdk::ClassReading> readings;  ///< of the latest round
  std::map<ContainerKey, LeftClass> left;
};

/// One type.
struct ClassTypeStatus {
  OfferedType offered;
  ClassWork work;
  std::map<std::string, uint64_t> users;  ///< class -> users, counted as capacity does
  std::vector<std::string> left;          ///< values of lost classes: one sentence per container
};

}  // namespace qrm::manager
