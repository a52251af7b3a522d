// Reads rules by namespace.
#include "scheduler/topology/published_permissions.h"

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace qrm::scheduler {

placement::Permissions ReadPermissions(const nlohmann::json& rules) {
  using Names = std::vector<std::string>;
  std::vector<placement::PermissionRule> read;
  for (const nlohmann::json& rule : rules) {
    read.push_back({.namespaces = rule.at("namespaces"),
                    .classes = rule.value("classes", Names()),
                    .drivers = rule.value("drivers", Names())});
  }
  return placement::Permissions(std::move(read));
}

}  // namespace qrm::scheduler
