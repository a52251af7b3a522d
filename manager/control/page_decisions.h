// The decisions on the page: the latest ones, and the latest one about each container.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "api/resource.h"
#include "checkpoint/decision_log.h"

namespace qrm::manager {

/// Limits that keep the page small, whatever pods and plugins write.
inline constexpr std::size_t kMostPageDecisions = 50;
inline constexpr std::size_t kMostWhyBytes = 8 << 10;

/// The page's id of a container, for paths: hexadecimal digits only.
std::string PageIdOf(const ContainerKey& key);

struct PageDecisions {
  std::string latest = "[]";  ///< a JSON list of up to kMostPageDecisions, latest first
  /// PageIdOf -> a JSON object of up to kMostWhyBytes about the container's latest decision.
  std::map<std::string, std::string> why;
};

/// The decisions in `traces`, which are oldest first. Cost: parses the document of each.
PageDecisions ReadForPage(const std::vector<checkpoint::DecisionTrace>& traces);

}  // namespace qrm::manager
