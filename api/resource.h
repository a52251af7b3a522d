// The value types that all layers share: who asks, for what, and what was given.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/shared.h"
#include "api/base/shared_text.h"
#include "api/base/status.h"
#include "api/hint.h"
#include "api/id_set.h"

namespace qrm {

// Members have initializers: designated initializers of plugins leave most of them out, and would
// warn of that (-Wextra). NOLINTBEGIN(readability-redundant-member-init)

using StringMap = std::map<std::string, std::string>;

/// One container of one pod, the same through restarts: container names are unique in a pod, init
/// containers included.
struct ContainerKey {
  SharedText pod_uid;
  SharedText container;

  auto operator<=>(const ContainerKey&) const = default;
};

/// The container's place in its pod. Source: resourceplugin.v1alpha1 ContainerType.
enum class ContainerType { kInit = 0, kMain = 1, kSidecar = 2, kEphemeral = 3 };

std::string_view ToString(ContainerType type);  // "INIT", "MAIN", "SIDECAR", "EPHEMERAL"

/// What one container asks of one plugin.
struct ContainerRequest {
  ContainerKey key{};
  SharedText pod_namespace{};
  SharedText pod_name{};
  ContainerType type = ContainerType::kMain;
  uint64_t index = 0;  ///< position among the pod's (init) containers
  SharedText pod_role{};
  SharedText pod_type{};
  SharedText resource{};  ///< the name under which the plugin is registered
  /// Units: CPUs for "cpu", bytes for memory and hugepages, the resource's own elsewhere; where the
  /// pod used another name, those of that name. One entry, keyed by the name the pod used; those of
  /// hugepages are beside that of memory.
  Shared<std::map<std::string, double>> requests{};
  /// What one of the entry is in the resource's own units, such as 0.001 for thousandths. Our own
  /// extension: other managers leave it absent.
  double scale = 1;
  /// The most of the resource that the container may have, where that is known. Our own extension:
  /// other managers leave it absent.
  std::optional<double> limit{};
  /// The amounts are what all containers of the pod ask for together: no container is given them,
  /// only hints are asked for. Our own extension: other managers leave it false.
  bool for_whole_pod = false;
  Shared<StringMap> labels{};
  Shared<StringMap> annotations{};
  SharedText native_qos_class{};  ///< "Guaranteed", "Burstable" or "BestEffort"
  SharedText runtime_class{};
  /// Set in Allocate for plugins with topology alignment: the merged hint.
  std::optional<TopologyHint> hint{};
  /// What a container that runs without a record has now, as far as the runtime reports it: it
  /// keeps that where it serves the request. For plugins in the manager's process; not on the wire.
  CpuSet runs_on{};
  NumaMask runs_near{};  ///< its memory nodes

  /// The requested amount: the only entry of `requests` beside hugepages, or 0 when there is none.
  /// Units: the resource's own.
  double quantity() const;

  bool operator==(const ContainerRequest&) const = default;
};

/// A host path that a container gets, as a plugin asked for it.
struct Mount {
  std::string container_path{};
  std::string host_path{};
  bool read_only = false;
  bool operator==(const Mount&) const = default;
};

/// A host device node that a container gets; `permissions` are letters of "rwm".
struct DeviceSpec {
  std::string container_path{};
  std::string host_path{};
  std::string permissions{};
  bool operator==(const DeviceSpec&) const = default;
};

/// What a plugin gave one container for one resource. Source: resourceplugin.v1alpha1
/// ResourceAllocationInfo.
struct ResourceAllocation {
  /// The knob to set, by its CRI LinuxContainerResources name ("CpusetCpus", "CpusetMems", ...);
  /// empty for none.
  std::string oci_property{};
  std::string value{};  ///< the knob's value, such as "0-3"
  bool is_node_resource = false;
  bool is_scalar_resource = false;
  double quantity = 0;  ///< meaningful for scalar resources; units as in ContainerRequest::requests
  StringMap envs{};
  StringMap annotations{};
  /// The hints that fit `value`; absent when the plugin did not say.
  std::optional<std::vector<TopologyHint>> hints{};
  std::map<uint64_t, uint64_t> amount_by_node{};  ///< NUMA node -> amount
  std::vector<Mount> mounts{};
  std::vector<DeviceSpec> devices{};
  /// The CPUs of `value` belong to this container alone. Our own extension: other plugins leave it
  /// false.
  bool exclusive = false;
  /// The manager inferred `exclusive`: the containers of a pod may have the same CPUs. Not on the
  /// wire.
  bool is_inferred = false;
  /// CPUs, kernel list form, that a container with exclusive CPUs may also use while a pool has
  /// them, and the part that the pool has: the knob gets `value` and `shares` together. The pool is
  /// `shares_of`; empty: the default pool. Our own extension: other plugins leave them empty.
  std::string may_share{};
  std::string shares{};
  std::string shares_of{};
  /// The pool that the container was led to, alone or beside exclusive CPUs, which its namespace
  /// must be permitted to use; empty: the default one, or none. Our own extension: other plugins
  /// leave it empty.
  std::string pool{};
  /// Those CPUs of `value`, kernel list form, that the container got after its first start, by a
  /// resize in place: it gives them up when it shrinks, and no others. `lacks`: how many exclusive
  /// CPUs it is without since the machine lost them, so that it asks for them again. Our own
  /// extension: other plugins leave them empty.
  std::string grown{};
  double lacks = 0;
  /// What decided it, for people: the place in the plugin's configuration, such as "rules[2]
  /// (config.yaml:14)". Our own extension: other plugins leave it empty.
  std::string decided_by{};
  /// Type -> class of the QoS-class resources that the container gets of those types of which it
  /// asks for none. Our own extension: other plugins leave it empty.
  StringMap class_defaults{};

  bool operator==(const ResourceAllocation&) const = default;
};

/// For boost::hash.
std::size_t hash_value(const ResourceAllocation& allocation);

/// The allocations of one container, by resource name.
using AllocationByResource = std::map<SharedText, Shared<ResourceAllocation>, std::less<>>;
/// The allocations of many containers, as a plugin or the checkpoint holds them.
using AllocationByContainer = std::map<ContainerKey, AllocationByResource>;

/// Whether `resource` is hugepages of some size, such as "hugepages-2Mi".
bool IsHugepages(std::string_view resource);

/// The knob names of CRI's LinuxContainerResources that an allocation may set.
inline constexpr std::string_view kCpusetCpus = "CpusetCpus";
inline constexpr std::string_view kCpusetMems = "CpusetMems";

/// A part of what a container holds, or a node offers. Source: resourceplugin.v1alpha1
/// TopologyAwareQuantity.
struct PlacedQuantity {
  enum class Level { kNuma, kSocket };

  double amount = 0;  ///< in the resource's units
  uint64_t node = 0;  ///< NUMA node or socket, as `level` says
  Level level = Level::kNuma;
  std::string name{};  ///< of the device, if it has one
  std::string type{};  ///< such as "NIC"
  StringMap annotations{};

  bool operator==(const PlacedQuantity&) const = default;
};

/// A resource as the node offers it: totals and the parts of each NUMA node, in the resource's
/// units.
struct AllocatableResource {
  bool is_node_resource = false;
  bool is_scalar_resource = false;
  double allocatable = 0;
  double capacity = 0;
  std::map<int, double> allocatable_by_node{};
  std::map<int, double> capacity_by_node{};
  /// The same amounts with sockets, names, types or annotations, where there are any: the
  /// pod-resources API then has these instead.
  std::vector<PlacedQuantity> allocatable_places{};
  std::vector<PlacedQuantity> capacity_places{};
  /// The CPUs behind `allocatable`, for a resource that is CPUs. Our own extension: other plugins
  /// leave it empty.
  CpuSet allocatable_cpus{};

  bool operator==(const AllocatableResource&) const = default;
};

// NOLINTEND(readability-redundant-member-init)

/// By resource name.
using AllocatableByResource = std::map<std::string, AllocatableResource>;

/// What a plugin wants of the manager. Source: resourceplugin.v1alpha1 ResourcePluginOptions.
struct PluginOptions {
  bool pre_start_required = false;
  bool with_topology_alignment = false;
  bool need_reconcile = false;
  /// The plugin says which CPUs are exclusive: its SDK does. Our own extension: for other plugins,
  /// the manager infers it.
  bool says_exclusive = false;
  bool resizes = false;  ///< of a compute driver: it is asked to change CPUs of running containers

  bool operator==(const PluginOptions&) const = default;
};

/// OK when `name` can name a resource: a Kubernetes qualified name, up to 63 letters, digits, '-',
/// '_', '.' that start and end with a letter or digit, after an optional DNS-subdomain prefix and
/// '/'. Errors: kInvalidArgument with the form. Source: Kubernetes API conventions, "qualified
/// name".
Status CheckResourceName(std::string_view name);

}  // namespace qrm
