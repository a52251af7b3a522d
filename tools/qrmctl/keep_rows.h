// Leaves out of a listing what was not asked for.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "api/base/config_key.h"

namespace qrm::manager::cli {

/// Keeps the `rows`, a repeated field, that `is_meant`.
template <typename Rows, typename IsMeant>
void KeepRows(Rows& rows, IsMeant is_meant) {
  rows.erase(
      std::remove_if(rows.begin(), rows.end(), [&](const auto& row) { return !is_meant(row); }),
      rows.end());
}

/// Keeps the `rows` of which `namespace_of` says `pod_namespace`; all when that is empty.
template <typename Rows, typename NamespaceOf>
void KeepNamespace(const std::string& pod_namespace, Rows& rows, NamespaceOf namespace_of) {
  if (!pod_namespace.empty()) {
    KeepRows(rows, [&](const auto& row) { return namespace_of(row) == pod_namespace; });
  }
}

/// The word for all that is remembered.
inline constexpr char kEver[] = "ever";

/// The time `ago` before now. Units: milliseconds since 1970; absent for a text that is not
/// a duration.
inline std::optional<int64_t> SinceOf(const std::string& ago) {
  if (ago == kEver) {
    return 0;
  }
  const auto duration = config::ParseDuration(ago);
  if (!duration.has_value()) {
    return std::nullopt;
  }
  const auto since = std::chrono::system_clock::now() - *duration;
  return std::chrono::duration_cast<std::chrono::milliseconds>(since.time_since_epoch()).count();
}

}  // namespace qrm::manager::cli
