// Reads what a node says, and names the annotation that it cannot read.
#include "scheduler/topology/published_annotation.h"

#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"

namespace qrm::scheduler {

using nlohmann::json;

Status ReadAnnotation(const std::string& key, const std::string& text, const JsonBounds& bounds,
                      const std::function<void(const json& lists)>& read) {
  const auto unreadable = [&](const std::string& cause) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot read annotation {}, which qrmd writes: {}; run a qrmd of this version there", key,
        cause);
  };
  const StatusOr<json> lists = ParseJson(text, bounds);
  if (!lists.ok()) {
    return unreadable("it " + MessageOf(lists.status()));
  }
  try {
    read(*lists);
  } catch (const json::exception& error) {
    return unreadable(error.what());
  }
  return OkStatus();
}

placement::Permissions ReadPermissions(const json& rules) {
  using Names = std::vector<std::string>;
  std::vector<placement::PermissionRule> read;
  for (const json& rule : rules) {
    read.push_back({.namespaces = rule.at("namespaces"),
                    .classes = rule.value("classes", Names()),
                    .drivers = rule.value("drivers", Names())});
  }
  return placement::Permissions(std::move(read));
}

}  // namespace qrm::scheduler
