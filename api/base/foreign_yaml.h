// Reads YAML within bounds, before any of it is built.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "api/base/status.h"

namespace YAML {
class Node;
}  // namespace YAML

namespace qrm::config {

enum class YamlAliases { kExpanded, kRefused };

/// What a text may have at most. Nodes, levels and the bytes of values are counted as if aliases
/// were written out, for so they are read.
struct YamlBounds {
  std::size_t bytes = std::size_t{2} << 20;
  std::size_t depth = 64;       ///< mappings and lists within each other
  std::size_t nodes = 100'000;  ///< keys, values, mappings and lists
  std::chrono::milliseconds time{5000};
  YamlAliases aliases = YamlAliases::kExpanded;
};

/// Of texts that come from the API server, whose writers are other nodes and tenants: as much as
/// fits into the annotations of an object.
inline constexpr YamlBounds kForeignYaml{.bytes = std::size_t{256} << 10,
                                         .nodes = 20'000,
                                         .time = std::chrono::milliseconds(1000),
                                         .aliases = YamlAliases::kRefused};

/// The documents of `text`, as if it were the content of `file`.
/// Errors: kInvalidArgument with file and line, for text that is not YAML, is beyond a bound, or
/// has an anchor that refers to itself. Cost: two passes; the first keeps nothing and ends at the
/// first bound.
StatusOr<std::vector<YAML::Node>> ParseYamlDocuments(const std::string& text,
                                                     const std::string& file,
                                                     const YamlBounds& bounds = {});

/// The first of them, and a null node where there is none.
StatusOr<YAML::Node> ParseYaml(const std::string& text, const std::string& file,
                               const YamlBounds& bounds = {});

}  // namespace qrm::config
