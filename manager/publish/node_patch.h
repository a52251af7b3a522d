// What qrmd writes to this node's Node object (extended resources, classes, compute drivers, and
// the configuration), and to the node's pods (classes).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "api/resource.h"
#include "manager/classes/class_choice.h"
#include "manager/registry/plugin_info.h"
#include "plugins/placement/driver_options.h"
#include "plugins/placement/permissions.h"

namespace qrm::manager {

/// The classes that the node offers, in the form of NodeStatus in KEP-3008.
inline constexpr char kClassesAnnotation[] = "qrm.io/class-resources";
/// The extended resources that qrmd wrote, so that it knows them after a restart.
inline constexpr char kOwnedAnnotation[] = "qrm.io/extended-resources";

/// The machine and the configuration of the node, for schedulers.
inline constexpr char kConfigAnnotation[] = "qrm.io/node-config";

/// Which compute drivers are ready.
inline constexpr char kDriversAnnotation[] = "qrm.io/compute-drivers";

/// The time of qrmd's latest sign of life, so that schedulers know how old the others are.
inline constexpr char kPublishedAnnotation[] = "qrm.io/published-at";

/// The classes of a pod and its containers.
inline constexpr char kPodClassesAnnotation[] = "qrm.io/class-status";

struct NodeWishes {
  StringMap extended_resources;        ///< name -> a whole number
  std::optional<std::string> classes;  ///< kClassesAnnotation; absent: none
  std::optional<std::string> config;   ///< kConfigAnnotation; absent: none
  std::optional<std::string> drivers;  ///< kDriversAnnotation; absent: none
  std::string published_at;            ///< kPublishedAnnotation; empty: none
};

/// The scalar node resources of plugins that pods can request: "DOMAIN/NAME", not in a domain of
/// Kubernetes. Amounts are whole numbers, as in Node status.
StringMap ExtendedResourcesOf(const AllocatableByResource& allocatable);

/// Classes with a capacity as extended resources: "rdt.qrm.io/gold", or "lanes.example.com/fast"
/// for a plugin's type.
StringMap ClassResourcesOf(const OfferedTypes& types);

/// The types, each with its usable classes.
/// Source: KEP-3008, NodeStatus. qrm adds `capacity` and `namespaces` of classes that have them,
/// and `permissions`: the rules about classes, in their order.
std::string ClassesText(const OfferedTypes& types, const placement::Permissions& permissions);

/// What a container lacks of its classes: one sentence each.
using ClassProblems = std::function<std::vector<std::string>(const ContainerKey&)>;

/// The classes that the pod and its containers have by their records, and what they lack of these;
/// empty: nothing.
std::string PodClassesText(const checkpoint::PodRecord& pod, const OfferedTypes& types,
                           const ClassProblems& problems_of);

/// The drivers in `plugins` and in `rules`, each with its `state` ("ready", "not running", or
/// "fallback" where the cpu plugin places containers instead) and the `namespaces` that may ask for
/// it; and `permissions`: the rules about drivers, in their order.
std::string DriversText(const std::vector<PluginInfo>& plugins,
                        const placement::DriverOptions& rules,
                        const placement::Permissions& permissions);

/// The extended resources that qrmd wrote to `node` (a v1 Node), with their amounts.
StringMap OwnedResources(const nlohmann::json& node);

/// While a plugin restarts, its resources must not disappear from the cluster.
///
/// Threads: one.
class KnownResources {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit KnownResources(std::chrono::milliseconds grace) : grace_(grace) {}

  /// Adds qrmd's resources on a Node from before this process, as if they were offered now. Newer
  /// data is not replaced. `amounts` has no amounts by NUMA node.
  void Recall(const StringMap& amounts, Time now);

  /// `told`, and the resources that were offered within the grace period before `now`.
  AllocatableByResource Join(const AllocatableByResource& told, Time now);

 private:
  struct Known {
    AllocatableResource resource;
    Time told_at;
  };

  const std::chrono::milliseconds grace_;
  std::map<std::string, Known> known_;
};

/// The merge patch of the Node's status that makes `node` equal to `wishes` and removes qrmd's
/// other resources; absent if nothing differs. Capacity and allocatable get the same amounts, as
/// kubelet does.
std::optional<nlohmann::json> NodePatch(const nlohmann::json& node, const NodeWishes& wishes);

}  // namespace qrm::manager
