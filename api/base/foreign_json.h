// Reads JSON that others wrote, within bounds of depth, count and bytes.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "api/base/status.h"

namespace qrm {

/// What a document may have at most: more than any object that etcd keeps in its 1.5 MiB, and twice
/// as deep as the types of Kubernetes are. As many values take some 50 MiB, beside their texts.
struct JsonBounds {
  std::size_t bytes = std::size_t{64} << 20;
  std::size_t depth = 64;        ///< objects and arrays within each other
  std::size_t values = 600'000;  ///< within objects and arrays, on all levels together
  bool unique_keys = false;      ///< a key that an object has twice is an error
};

/// The document `text`; of a key that an object has twice, the last value counts. Nothing of it is
/// deep enough to fill the stack of code that copies, compares or prints it. Errors:
/// kInvalidArgument for text that is not JSON, kResourceExhausted for text beyond a bound,
/// kAlreadyExists for a key that must be unique.
/// The message is the cause, such as "is nested more than 64 deep"; the caller adds the rest.
/// Cost: one pass without recursion, which ends at the first bound.
StatusOr<nlohmann::json> ParseJson(std::string_view text, const JsonBounds& bounds = {});

/// The same for a list as Kubernetes has them, whose "items" are many: each is given to `take` once
/// it is read, and is not kept, so that the list needs the memory of its largest item. An item that
/// was taken counts as one value. What was taken before an error counts for nothing.
StatusOr<nlohmann::json> ParseJsonList(std::string_view text,
                                       const std::function<void(const nlohmann::json& item)>& take,
                                       const JsonBounds& bounds = {});

/// The member `key` of `object`; null JSON where it has none or is not an object.
const nlohmann::json& PartOf(const nlohmann::json& object, const char* key);
/// The text that the member is; empty where it is none.
std::string TextIn(const nlohmann::json& object, const char* key);

}  // namespace qrm
