// Reads the values of an object as texts.
#include "plugins/rules/flat_json.h"

#include <string>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"
#include "api/base/foreign_text.h"

namespace qrm::rules {

StatusOr<StringMap> ParseFlatJson(std::string_view text) {
  // The API server's policies compare the text: an escape could hide a key from them.
  if (text.find('\\') != std::string_view::npos) {
    return Errorf(StatusCode::kInvalidArgument,
                  "has a backslash; write keys and values without escapes");
  }
  const StatusOr<nlohmann::json> object = ParseJson(text, kAnnotationBounds);
  if (object.status().code() == StatusCode::kAlreadyExists) {
    return Errorf(StatusCode::kInvalidArgument, "{}; remove one of them",
                  MessageOf(object.status()));
  }
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
    if (value.is_structured()) {  // no reader of these annotations looks into it
      return Errorf(StatusCode::kInvalidArgument,
                    "has an object or a list in '{}'; write a string, true or false", Quoted(key));
    }
    if (value.is_string()) {
      values[key] = value.get<std::string>();
    } else if (value.is_boolean()) {
      values[key] = value.get<bool>() ? "true" : "false";
    }
  }
  return values;
}

}  // namespace qrm::rules
