// The extended resources that this program has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scheduler/cache/handle.h"

namespace qrm::scheduler {

/// The NUMA nodes of a node: a pod fits when the node itself will admit it. Reads each Node's
/// annotation kNodeConfig; see ReadNodeModel. A pod's place is that of its annotation, else what
/// the node would give it: the pods without one are placed after the others, in the order of their
/// UIDs.
inline constexpr char kNuma[] = "numa";
inline constexpr char kNodeConfig[] = "qrm.io/node-config";
std::unique_ptr<Handle> MakeNumaHandle();

/// NodeResourceTopology objects: decides as the upstream scheduler plugin. The amounts are those
/// that the node wrote, as the plugin takes them without a cache of its own; pods that were bound
/// since then are not subtracted.
inline constexpr char kNumaMatch[] = "numa-match";
inline constexpr char kTopologies[] = "noderesourcetopologies.v1alpha2.topology.node.k8s.io";
std::unique_ptr<Handle> MakeMatchHandle();

/// QoS-class resources: a node has a class, for the pod's namespace, and a place of it is free.
/// Nodes report their classes in the annotation kNodeClasses. Default classes are not counted: only
/// the node knows whether it had capacity for one.
inline constexpr char kClasses[] = "classes";
std::unique_ptr<Handle> MakeClassesHandle();

/// Compute drivers: pods that ask for one by annotation fit only on nodes where it is ready, or
/// where other plugins take its place, and where their namespace may ask for it. Nodes report them
/// in the annotation kNodeDrivers, which qrmd writes with `publish: [drivers]`.
inline constexpr char kDrivers[] = "compute-drivers";
std::unique_ptr<Handle> MakeDriversHandle();

/// The type that pods are judged by unless configured.
inline constexpr const char* kStandardResource = kNuma;

/// By type, what makes their handles.
const HandleFactories& ResourceFactories();

std::vector<std::string> ResourceTypes();

/// `types` are some of ResourceTypes().
HandleRegistry RegisterResources(const std::vector<std::string>& types);

}  // namespace qrm::scheduler
