// Reads the values of an object as texts.
#include "plugins/placement/flat_json.h"

#include <string>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"

namespace qrm::placement {

StatusOr<StringMap> ParseFlatJson(std::string_view text) {
  const StatusOr<nlohmann::json> object = ParseJson(text, kAnnotationBounds);
  if (object.status().code() == StatusCode::kResourceExhausted) {
    return Errorf(StatusCode::kInvalidArgument, "{}; remove unused keys",
                  MessageOf(object.status()));
  }
  if (!object.ok() || !object->is_object()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "is not a JSON object; write one such as {{\"numa_binding\": \"true\"}}");
  }
  StringMap values;
  for (const auto& [key, value] : object->items()) {
    if (value.is_string()) {
      values[key] = value.get<std::string>();
    } else if (value.is_boolean()) {
      values[key] = value.get<bool>() ? "true" : "false";
    }
  }
  return values;
}

}  // namespace qrm::placement
