// What the pods of each namespace may ask for on a node, as the node publishes it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plugins/placement/permissions.h"

namespace qrm::scheduler {

/// Reads the member `permissions` of an annotation: a list of {namespaces, classes} or {namespaces,
/// drivers}, in the order of the node's rules. Throws what the JSON library throws.
placement::Permissions ReadPermissions(const nlohmann::json& rules);

}  // namespace qrm::scheduler
