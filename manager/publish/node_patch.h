// What a Node object shall say of this node beside what kubelet writes: extended resources and
// classes.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/resource.h"
#include "manager/classes/class_choice.h"
#include "plugins/placement/permissions.h"

namespace qrm::manager {

/// The classes that the node offers, in the form of NodeStatus in KEP-3008.
inline constexpr char kClassesAnnotation[] = "qrm.io/class-resources";
/// The extended resources that are ours, so that we know them after a restart.
inline constexpr char kOwnedAnnotation[] = "qrm.io/extended-resources";

/// What others place pods on the node by: its machine and configuration.
inline constexpr char kConfigAnnotation[] = "qrm.io/node-config";

struct NodeWishes {
  StringMap extended_resources;        ///< name -> a whole number
  std::optional<std::string> classes;  ///< kClassesAnnotation; absent: none
  std::optional<std::string> config;   ///< kConfigAnnotation; absent: none
};

/// The resources of plugins that ask for it (scalar ones that are a node's) and that pods can
/// request: "DOMAIN/NAME", and none of Kubernetes' domains. Whole numbers, as Node status has them.
StringMap ExtendedResourcesOf(const AllocatableByResource& allocatable);

/// Classes of limited number as extended resources: "rdt.qrm.io/gold"; "lanes.example.com/fast" of
/// a plugin's type.
StringMap ClassResourcesOf(const OfferedTypes& types);

/// The types and those of their classes that can be given.
/// Source: KEP-3008, NodeStatus. Our additions are `capacity` and `namespaces`, of the classes that
/// have some, and `permissions`, what the rules say of classes, in their order.
std::string ClassesText(const OfferedTypes& types, const placement::Permissions& permissions);

/// The extended resources that `node` (a v1 Node) says are ours, with their amounts there.
StringMap OwnedResources(const nlohmann::json& node);

/// The merge patch of the Node's status after which `node` says what is wished, and of what is ours
/// nothing else; absent when it does already. Capacity and allocatable are the same: kubelet makes
/// them so.
std::optional<nlohmann::json> NodePatch(const nlohmann::json& node, const NodeWishes& wishes);

}  // namespace qrm::manager
