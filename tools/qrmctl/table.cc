// Prints a table in two passes: measure, then print.
#include "tools/qrmctl/table.h"

#include <algorithm>
#include <utility>

#include "api/base/check.h"
#include "api/base/foreign_text.h"

namespace qrm::manager::cli {
namespace {

constexpr std::size_t kGap = 3;

void Pad(std::ostream& out, const std::string& text, std::size_t width) {
  out << text << std::string(width - text.size(), ' ');
}

}  // namespace

Table::Table(std::vector<std::string> headers) {
  rows_.push_back(std::move(headers));
}

void Table::Add(std::vector<std::string> cells) {
  QRM_CHECK(cells.size() == rows_.front().size());
  for (std::string& cell : cells) {
    cell = cell.empty() ? "-" : Escaped(cell);  // names come from pods
  }
  rows_.push_back(std::move(cells));
}

void Table::Print(std::ostream& out, std::size_t indent) const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  for (const auto& row : rows_) {
    out << std::string(indent, ' ');
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      Pad(out, row[i], widths[i] + kGap);
    }
    out << row.back() << '\n';
  }
}

void Sheet::Add(const std::string& name, const std::string& value) {
  lines_.emplace_back(Escaped(name), Escaped(value));
}

void Sheet::Print(std::ostream& out, std::size_t indent) const {
  std::size_t width = 0;
  for (const auto& [name, value] : lines_) {
    width = std::max(width, name.size() + 1);
  }
  for (const auto& [name, value] : lines_) {
    out << std::string(indent, ' ');
    Pad(out, name + ":", width + kGap);
    out << value << '\n';
  }
}

}  // namespace qrm::manager::cli
