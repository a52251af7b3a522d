// Reads the small JSON objects that pods carry in annotations, within bounds.
#pragma once

#include <string_view>

#include "api/base/foreign_json.h"
#include "api/base/status.h"
#include "api/resource.h"

namespace qrm::rules {

/// What an annotation's object may have at most: its writer is anybody who may make pods.
inline constexpr JsonBounds kAnnotationBounds{.bytes = 4096, .depth = 4, .values = 64};

/// The strings and booleans ("true", "false") that stand directly in the object `text`; what else
/// it has is passed over. Errors: kInvalidArgument with the cause and the cure, such as "is no JSON
/// object; write ...".
StatusOr<StringMap> ParseFlatJson(std::string_view text);

}  // namespace qrm::rules
