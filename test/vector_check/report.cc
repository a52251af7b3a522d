// Runs rows and prints a line for each failure.
#include "test/vector_check/report.h"

#include <cstddef>
#include <exception>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace qrm::vectors {

void Report::Section(const Json& file, const std::string& section,
                     const std::function<Difference(const Json&)>& check) {
  if (file.contains(section)) {
    Rows(file.at(section), section, check);
  }
}

void Report::PluginSection(const Json& file, const std::string& section,
                           const std::function<PluginOutcome(const Json&)>& check,
                           const std::string& title) {
  if (!file.contains(section)) {
    return;
  }
  const int before = passed_ + failed_;
  int through = 0;
  Rows(file.at(section), section, [&](const Json& row) {
    PluginOutcome outcome = check(row);
    through += outcome.through_plugin ? 1 : 0;
    return outcome.difference;
  });
  const int rows = passed_ + failed_ - before;
  out_ << (title.empty() ? section : title) << ": " << through << " rows through the plugin, "
       << rows - through << " by the functions that it calls\n";
}

void Report::Rows(const Json& rows, const std::string& section,
                  const std::function<Difference(const Json&)>& check) {
  std::size_t position = 0;
  for (const Json& row : rows) {
    const std::string id = row.contains("id") && row.at("id").is_string()
                               ? row.at("id").get<std::string>()
                               : fmt::format("{}/{}", section, position);
    ++position;
    Difference difference;
    try {
      difference = check(row);
    } catch (const std::exception& error) {
      difference = fmt::format("cannot read the row: {}", error.what());
    }
    if (difference.empty()) {
      ++passed_;
      continue;
    }
    ++failed_;
    out_ << id << ": " << difference << '\n';
  }
}

NumaMask MaskOf(const Json& nodes) {
  NumaMask mask;
  for (const Json& node : nodes) {
    mask.Add(node.get<int>());
  }
  return mask;
}

std::string HintsText(const HintList& hints) {
  std::set<std::string> sorted;
  for (const TopologyHint& hint : hints.hints()) {
    sorted.insert(ToString(hint));
  }
  return fmt::format("{}", fmt::join(sorted, "; "));
}

HintList HintsOf(const Json& hints) {
  std::vector<TopologyHint> list;
  for (const Json& hint : hints) {
    list.push_back({.nodes = MaskOf(hint.at("numa")), .preferred = hint.at("preferred")});
  }
  return HintList(std::move(list));
}

Difference Compare(const std::string& got, const std::string& wanted) {
  return got == wanted ? "" : fmt::format("got \"{}\", expected \"{}\"", got, wanted);
}

}  // namespace qrm::vectors
