// Leaves out of a listing what was not asked for.
#pragma once

#include <algorithm>
#include <string>

#include <google/protobuf/repeated_field.h>

namespace qrm::manager::cli {

/// Keeps the `rows` that `is_meant`.
template <typename Row, typename IsMeant>
void KeepRows(google::protobuf::RepeatedPtrField<Row>& rows, IsMeant is_meant) {
  rows.erase(
      std::remove_if(rows.begin(), rows.end(), [&](const Row& row) { return !is_meant(row); }),
      rows.end());
}

/// Keeps the `rows` of which `namespace_of` says `pod_namespace`; all when that is empty.
template <typename Row, typename NamespaceOf>
void KeepNamespace(const std::string& pod_namespace, google::protobuf::RepeatedPtrField<Row>& rows,
                   NamespaceOf namespace_of) {
  if (!pod_namespace.empty()) {
    KeepRows(rows, [&](const Row& row) { return namespace_of(row) == pod_namespace; });
  }
}

}  // namespace qrm::manager::cli
