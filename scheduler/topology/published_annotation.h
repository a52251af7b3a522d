// The annotations that qrmd publishes on its Node, in JSON.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/base/foreign_json.h"
#include "api/base/status.h"
#include "plugins/placement/permissions.h"

namespace qrm::scheduler {

/// Gives `read` what `text`, of annotation `key`, has. Errors: kInvalidArgument for text that is
/// not JSON within `bounds`, and when `read` throws what the JSON library throws.
Status ReadAnnotation(const std::string& key, const std::string& text, const JsonBounds& bounds,
                      const std::function<void(const nlohmann::json& lists)>& read);

/// Reads the member `permissions` of an annotation, what the pods of each namespace may ask for: a
/// list of {namespaces, classes} or {namespaces, drivers}, in the order of the node's rules. Throws
/// what the JSON library throws.
placement::Permissions ReadPermissions(const nlohmann::json& rules);

}  // namespace qrm::scheduler
