// What the page tells of decisions: the latest ones, and of each container why it is where it is.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "api/resource.h"
#include "checkpoint/decision_log.h"

namespace qrm::manager {

/// So that the page stays small, whatever pods and plugins wrote.
inline constexpr std::size_t kMostPageDecisions = 50;
inline constexpr std::size_t kMostWhyBytes = 8 << 10;

/// How the page names a container in a path: digits and letters only, whatever its name is.
std::string PageIdOf(const ContainerKey& key);

struct PageDecisions {
  std::string latest = "[]";  ///< a JSON list, the latest first, of kMostPageDecisions
  /// By PageIdOf: a JSON object of up to kMostWhyBytes about the latest decision on a container.
  std::map<std::string, std::string> why;
};

/// `traces` as the log reads them, oldest first. Cost: reads the document of each.
PageDecisions ReadForPage(const std::vector<checkpoint::DecisionTrace>& traces);

}  // namespace qrm::manager
