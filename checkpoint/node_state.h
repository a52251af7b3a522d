// The node's state: everything it has promised, as an immutable value that changes only by making
// the next one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/pod_set.h"
#include "api/resource.h"

namespace qrm::checkpoint {

/// What the runtime reported about a pod.
struct PodMeta {
  SharedText uid;
  SharedText pod_namespace;
  SharedText name;
  SharedText role;
  SharedText type;
  SharedText qos_class;
  Shared<StringMap> labels;
  Shared<StringMap> annotations;

  bool operator==(const PodMeta&) const = default;
};

/// What an allocation amounted to.
struct Amounts {
  double quantity = 0;
  std::map<uint64_t, uint64_t> by_node;  ///< NUMA node -> amount

  bool operator==(const Amounts&) const = default;
};

/// Who gave an allocation.
struct Origin {
  std::string plugin;    ///< the resource whose plugin was asked; what accompanies it names it, too
  std::string endpoint;  ///< that plugin's socket, "built-in", or "import" for a peer's checkpoint
  /// What it amounted to at the admission, where a reconcile changed that since.
  std::optional<Amounts> admitted;

  bool operator==(const Origin&) const = default;
};

/// For boost::hash.
std::size_t hash_value(const Origin& origin);

/// One admitted container.
struct ContainerRecord {
  ContainerType type = ContainerType::kMain;
  uint64_t index = 0;
  bool restartable_init = false;  ///< a sidecar whose `index` is among the pod's init containers
  Shared<std::map<std::string, double>> requests;  ///< resource -> amount, as in ContainerRequest
  Shared<std::map<std::string, double>> limits;    ///< where a limit is known
  SharedText
      request_source;  ///< where `requests` came from: "pods-api", "kubelet", "estimate", ...
  SharedText runtime_class;
  SharedText skipped;  ///< why it only stays off what others own; empty: it is not skipped
  AllocationByResource allocations;
  Shared<std::map<std::string, Origin>> origins;  ///< of the allocations, by resource name
  /// Type of QoS-class resources -> the class that the container has of it; of types that pods have
  /// as a whole, the pod's, equal in all its containers.
  Shared<StringMap> classes;
  Shared<StringMap> applied;  ///< OCI property -> value that the runtime last took from us
  /// The runtime's id of the container that took `applied`: nothing is applied to another one.
  SharedText applied_to;

  /// What the container that the runtime calls `id` has taken.
  const StringMap& AppliedTo(const std::string& id) const;
  /// The plugin that gave the allocation of `resource`; that of its name when none is recorded.
  std::string PluginOf(const std::string& resource) const;

  bool operator==(const ContainerRecord&) const = default;
};

/// One admitted pod.
struct PodRecord {
  PodMeta meta;
  /// Among the pods of one name, the order of their admission; the state gives it.
  int64_t order = 0;
  std::map<SharedText, std::shared_ptr<const ContainerRecord>, std::less<>> containers;
};

/// Type of QoS-class resources, and class.
using ClassName = std::pair<std::string, std::string>;

/// How many have a class: containers that run at the same time, and pods.
struct ClassUsers {
  uint64_t pods = 0;
  uint64_t containers = 0;

  void operator+=(const ClassUsers& more) {
    pods += more.pods;
    containers += more.containers;
  }
  void operator-=(const ClassUsers& fewer) {
    pods -= fewer.pods;
    containers -= fewer.containers;
  }
  bool operator==(const ClassUsers&) const = default;
};
using ClassUse = std::map<ClassName, ClassUsers>;

/// CPUs in the kernel's list form -> how many containers may run on them. Empty: on any.
using CpuLists = std::map<std::string, std::size_t>;

/// One transaction: everything in it becomes durable and visible at once, or nothing. Removals are
/// applied before puts, and `done` before `add`.
struct Change {
  struct PutContainer {
    PodMeta pod;
    SharedText container;
    ContainerRecord record;

    bool operator==(const PutContainer&) const = default;
  };
  std::vector<PutContainer> put_containers;
  std::vector<std::string> remove_pods;         ///< UIDs; unknown ones are ignored
  std::vector<ContainerKey> remove_containers;  ///< a pod without containers goes with its last one
  /// Plugins (by resource name) that must still be notified that a pod is gone, and plugins that
  /// were notified.
  std::vector<std::pair<std::string, std::string>> add_pending_removals;   ///< (pod UID, resource)
  std::vector<std::pair<std::string, std::string>> done_pending_removals;  ///< (pod UID, resource)
  StringMap put_plugin_values;  ///< plugin -> what it keeps beside its allocations; empty: nothing

  bool Empty() const;
  bool operator==(const Change&) const = default;
};

/// Every pod with its containers, and the removals of which plugins must still be notified.
/// Threads: immutable, any.
class NodeState {
 public:
  using PodPtr = std::shared_ptr<const PodRecord>;

  /// The state with `pods`, which are in the strict order of their UIDs. Cost: much less than
  /// adding them one by one.
  static NodeState Restore(const std::vector<PodPtr>& pods);

  /// Null when unknown; valid as long as this state.
  const PodRecord* FindPod(const std::string& uid) const;
  const ContainerRecord* Find(const ContainerKey& key) const;
  /// Null when unknown; of several with one name, the last admitted.
  const PodRecord* FindPodByName(const std::string& pod_namespace, const std::string& name) const;

  /// Calls `visit` for every pod, in the order of their UIDs.
  void ForEachPod(const std::function<void(const PodRecord&)>& visit) const;
  /// Calls `visit` for every pod of the name, in the order of their admission. Cost: these pods.
  void ForEachPodNamed(const std::string& pod_namespace, const std::string& name,
                       const std::function<void(const PodRecord&)>& visit) const;
  /// Calls `visit` for every pod that has CPUs for itself alone, in that order. Cost: these pods.
  void ForEachCpuOwner(const std::function<void(const PodRecord&)>& visit) const;
  /// What all pods bind of each NUMA node at once; a node that is not there: nothing. Units: bytes.
  const std::map<uint64_t, uint64_t>& bound_memory() const;
  /// The classes in use. Of each pod, the containers count that run at the same time: all main
  /// containers and sidecars, or one init container.
  const ClassUse& class_use() const;
  /// Where containers may run by their record, and by what the runtime took: each counts once for
  /// each different list.
  const CpuLists& cpu_lists() const;
  std::size_t pod_count() const;
  std::size_t container_count() const;

  /// Pod UID -> plugins that have not been notified yet.
  const std::map<std::string, std::set<std::string>>& pending_removals() const;
  /// What built-in plugins keep beside their allocations, such as the sizes of pools.
  const StringMap& plugin_values() const;

  /// The state after `change`. Cost: the records that `change` touches, each with log2(n) parts for
  /// n pods; the other records are shared.
  NodeState With(Change change) const;

  /// The change that makes this state out of an empty one.
  Change AsChange() const { return Since(NodeState()); }
  /// The change that makes this state out of `before`. Cost: a look at every pod; records that both
  /// states share are not compared.
  Change Since(const NodeState& before) const;

  /// The pods that the two states do not share: those that were admitted, changed or removed
  /// between them. Cost: these, each with log2(n) parts for n pods.
  PodSet PodsUnlike(const NodeState& other) const;

  /// Cost: compares every record.
  friend bool operator==(const NodeState& a, const NodeState& b);

  // Copies share everything; there is no moved-from state.
  NodeState();
  ~NodeState();
  NodeState(const NodeState&);
  NodeState& operator=(const NodeState&);

 private:
  struct Rep;
  class Transition;
  std::shared_ptr<const Rep> rep_;
};

}  // namespace qrm::checkpoint
