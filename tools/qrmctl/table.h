// Aligned columns under upper-case headers, as kubectl and crictl print them.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "api/base/status.h"

namespace qrm::manager::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> headers);

  /// As many cells as headers. An empty cell prints as "-", control characters as escapes.
  void Add(std::vector<std::string> cells);

  bool empty() const { return rows_.size() == 1; }

  /// Puts the rows into the order of the column under `header`, in any case of letters; numbers in
  /// texts count as numbers. Empty: leaves them. Errors: kInvalidArgument with the headers.
  Status SortBy(const std::string& header);

  /// Prints the rows by SortBy, or `if_empty` where there are none. Errors: those of SortBy.
  Status PrintSorted(const std::string& header, const char* if_empty, std::ostream& out);
  /// Prints an empty line and the rows, or nothing where there are none.
  void PrintBelow(std::ostream& out) const;

  /// Columns are as wide as their widest cell and three spaces; the last one is not padded.
  /// `indent` spaces before each line.
  void Print(std::ostream& out, std::size_t indent = 0) const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the headers first
};

/// `Name:   value` lines with aligned values, as `kubectl describe` prints them.
class Sheet {
 public:
  void Add(const std::string& name, const std::string& value);
  /// `indent` spaces before each line.
  void Print(std::ostream& out, std::size_t indent = 0) const;

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

}  // namespace qrm::manager::cli
