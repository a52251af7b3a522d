// Compares the versions that the API server gives to objects.
#pragma once

#include <string>

namespace qrm {

/// Negative when version `a` is older than `b`, 0 when equal, positive when newer; the empty one is
/// the oldest. Only for versions of one kind of object.
/// Source: KEP-5504, comparable resource versions: decimal numbers without leading zeros, of any
/// length.
inline int CompareVersions(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) {
    return a.size() < b.size() ? -1 : 1;
  }
  return a.compare(b);
}

}  // namespace qrm
