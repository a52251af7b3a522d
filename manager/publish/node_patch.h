// What qrmd writes to this node's Node object: extended resources, classes, and the configuration.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/resource.h"
#include "manager/admission/permissions.h"
#include "manager/classes/class_choice.h"

namespace qrm::manager {

/// The classes that the node offers, in the form of NodeStatus in KEP-3008.
inline constexpr char kClassesAnnotation[] = "qrm.io/class-resources";
/// The extended resources that qrmd wrote, so that it knows them after a restart.
inline constexpr char kOwnedAnnotation[] = "qrm.io/extended-resources";

/// The machine and the configuration of the node, for schedulers.
inline constexpr char kConfigAnnotation[] = "qrm.io/node-config";

struct NodeWishes {
  StringMap extended_resources;        ///< name -> a whole number
  std::optional<std::string> classes;  ///< kClassesAnnotation; absent: none
  std::optional<std::string> config;   ///< kConfigAnnotation; absent: none
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
std::string ClassesText(const OfferedTypes& types, const Permissions& permissions);

/// The extended resources that qrmd wrote to `node` (a v1 Node), with their amounts.
StringMap OwnedResources(const nlohmann::json& node);

/// The merge patch of the Node's status that makes `node` equal to `wishes` and removes qrmd's
/// other resources; absent if nothing differs. Capacity and allocatable get the same amounts, as
/// kubelet does.
std::optional<nlohmann::json> NodePatch(const nlohmann::json& node, const NodeWishes& wishes);

}  // namespace qrm::manager
