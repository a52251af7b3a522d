// Prints a table in two passes: measure, then print.
#include "tools/qrmctl/table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/ranges.h>

#include "api/base/check.h"
#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/text.h"
#include "tools/qrmctl/colours.h"

namespace qrm::manager::cli {
namespace {

constexpr std::size_t kGap = 3;

void Pad(std::ostream& out, const std::string& text, std::size_t width) {
  out << text << std::string(width - text.size(), ' ');
}

/// `cell` of the column under `header`, in colours where those are wanted.
std::string Painted(const std::string& cell, const std::string& header, const std::ostream& out) {
  if (!HasColours(out)) {
    return cell;
  }
  if (&cell == &header) {
    return Bold(cell);
  }
  return header == "STATE" || header == "RESULT" || header == "Ready" ? InItsColour(cell) : cell;
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

Status Table::SortBy(const std::string& header) {
  if (header.empty()) {
    return OkStatus();
  }
  const std::vector<std::string>& headers = rows_.front();
  const auto column = std::find_if(headers.begin(), headers.end(), [&](const std::string& each) {
    return Lower(each) == Lower(header);
  });
  if (column == headers.end()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "there is no column \"{}\" to sort by; choose from {}", header,
                  fmt::join(headers, ", "));
  }
  const auto place = static_cast<std::size_t>(column - headers.begin());
  std::stable_sort(rows_.begin() + 1, rows_.end(), [place](const auto& a, const auto& b) {
    return ::strverscmp(a[place].c_str(), b[place].c_str()) < 0;  // "web-2" before "web-10"
  });
  return OkStatus();
}

Status Table::PrintSorted(const std::string& header, const char* if_empty, std::ostream& out) {
  QRM_RETURN_IF_ERROR(SortBy(header));
  if (empty()) {
    out << if_empty;
  } else {
    Print(out);
  }
  return OkStatus();
}

void Table::PrintBelow(std::ostream& out) const {
  if (!empty()) {
    out << '\n';
    Print(out);
  }
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
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      out << Painted(row[i], rows_.front()[i], out)
          << std::string(last ? 0 : widths[i] + kGap - row[i].size(), ' ');
    }
    out << '\n';
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
    out << Painted(value, name, out) << '\n';
  }
}

}  // namespace qrm::manager::cli
