// Stores maps and lists in one column, and computes the checksums that prove a row undamaged.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "checkpoint/sqlite/sqlite_db.h"

namespace qrm::checkpoint {

/// JSON text, empty for an empty map or list. Errors: kInvalidArgument for text that is not UTF-8
/// or a number that JSON cannot say.
StatusOr<std::string> ToColumn(const StringMap& map);
StatusOr<std::string> ToColumn(const std::map<std::string, double>& map);
StatusOr<std::string> ToColumn(const std::map<uint64_t, uint64_t>& map);
StatusOr<std::string> ToColumn(const std::vector<Mount>& mounts);
StatusOr<std::string> ToColumn(const std::vector<DeviceSpec>& devices);

/// "0-1 preferred; 2", "any preferred", "none" for a list without hints, empty for no list.
std::string ToColumn(const std::optional<std::vector<TopologyHint>>& hints);

/// The inverse of ToColumn. Errors: kDataLoss for anything that ToColumn does not write.
Status FromColumn(std::string_view text, StringMap& map);
Status FromColumn(std::string_view text, std::map<std::string, double>& map);
Status FromColumn(std::string_view text, std::map<uint64_t, uint64_t>& map);
Status FromColumn(std::string_view text, std::vector<Mount>& mounts);
Status FromColumn(std::string_view text, std::vector<DeviceSpec>& devices);
Status FromColumn(std::string_view text, std::optional<std::vector<TopologyHint>>& hints);

/// A checksum over kinds and contents. Source: FNV-1a, 64 bits, words instead of bytes where a
/// value is a word.
class RowSum {
 public:
  void Add(const SqliteValue& value);
  int64_t value() const { return static_cast<int64_t>(hash_); }

 private:
  void AddWord(uint64_t word);

  uint64_t hash_ = 0xcbf29ce484222325;
};

/// Runs `statement` with `values`, their checksum, and then `rest`.
Status RunSummed(SqliteStatement& statement, SqliteStatement::Values values,
                 SqliteStatement::Values rest = {});
/// Runs `statement` with `values`, their checksum, `more`, which a later schema added, and the
/// checksum of these.
Status RunSummedTwice(SqliteStatement& statement, SqliteStatement::Values values,
                      SqliteStatement::Values more);

}  // namespace qrm::checkpoint
