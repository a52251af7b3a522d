// Runs rows and prints a line for each failure.
#include "test/vector_check/report.h"

#include <cstddef>
#include <exception>

#include <fmt/format.h>

namespace qrm::vectors {

void Report::Section(const Json& file, const std::string& section,
                     const std::function<Difference(const Json&)>& check) {
  if (file.contains(section)) {
    Rows(file.at(section), section, check);
  }
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

Difference Compare(const std::string& got, const std::string& wanted) {
  return got == wanted ? "" : fmt::format("got \"{}\", expected \"{}\"", got, wanted);
}

}  // namespace qrm::vectors
