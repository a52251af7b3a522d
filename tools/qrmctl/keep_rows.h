// Leaves out of a listing what was not asked for.
#pragma once

#include <algorithm>
#include <string>

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

}  // namespace qrm::manager::cli
