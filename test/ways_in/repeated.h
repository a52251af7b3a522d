// Text that is as long as it may be.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qrm::test {

/// As much as Kubernetes takes in annotations of an object.
inline constexpr std::size_t kMostAnnotationBytes = 250'000;

/// `text` again and again, until there are `bytes`.
inline std::string Repeated(std::string_view text, std::size_t bytes) {
  std::string repeated;
  repeated.reserve(bytes + text.size());
  while (repeated.size() < bytes) {
    repeated += text;
  }
  return repeated;
}

}  // namespace qrm::test
