// Reads the small JSON objects that pods carry in annotations, within bounds.
#pragma once

#include <cstddef>
#include <string_view>

#include "api/base/status.h"
#include "api/resource.h"

namespace qrm::placement {

/// What an annotation's object may have at most: its writer is anybody who may make pods.
inline constexpr std::size_t kMostJsonBytes = 4096;
inline constexpr std::size_t kMostJsonDepth = 4;  ///< objects and arrays within each other
inline constexpr std::size_t kMostJsonKeys = 64;  ///< of all objects together

/// The strings and booleans ("true", "false") that stand directly in the object `text`; what else
/// it has is passed over. Of a key that is there twice, the last such value.
/// Errors: kInvalidArgument with the cause and the cure, such as "is no JSON object; write ...".
/// Cost: one pass, without recursion, and no copy of what is passed over.
StatusOr<StringMap> ParseFlatJson(std::string_view text);

}  // namespace qrm::placement
