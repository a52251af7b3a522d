// Leaves out of a listing what other namespaces have.
#pragma once

#include <algorithm>
#include <string>

#include <google/protobuf/repeated_field.h>

namespace qrm::manager::cli {

/// Keeps the `rows` of which `namespace_of` says `pod_namespace`; all when that is empty.
template <typename Row, typename NamespaceOf>
void KeepNamespace(const std::string& pod_namespace, google::protobuf::RepeatedPtrField<Row>& rows,
                   NamespaceOf namespace_of) {
  if (!pod_namespace.empty()) {
    rows.erase(std::remove_if(rows.begin(), rows.end(),
                              [&](const Row& row) { return namespace_of(row) != pod_namespace; }),
               rows.end());
  }
}

}  // namespace qrm::manager::cli
