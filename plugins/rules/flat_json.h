// Reads small JSON objects in pods' annotations, within bounds.
#pragma once

#include <string_view>

#include "api/base/foreign_json.h"
#include "api/base/status.h"
#include "api/resource.h"

namespace qrm::rules {

/// Bounds of an annotation's object: all users who can create pods can write it. Of a key that is
/// there twice, other readers could take the other value.
inline constexpr JsonBounds kAnnotationBounds{
    .bytes = 4096, .depth = 4, .values = 64, .unique_keys = true};

/// The strings and booleans ("true", "false") directly in the object `text`; other values are
/// skipped. Errors: kInvalidArgument with cause and remedy, such as "is not a JSON object; write
/// ..."; also for a key that is there twice, for escapes, and for objects and lists within.
StatusOr<StringMap> ParseFlatJson(std::string_view text);

}  // namespace qrm::rules
