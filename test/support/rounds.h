// How often tests repeat work that a sanitizer makes slow.
#pragma once

#include <cstdlib>

#include "api/base/number.h"

namespace qrm::test {

/// `full`, or a tenth of it under a sanitizer, which takes ten times as long for each round.
constexpr int Rounds(int full) {
#if defined(__SANITIZE_ADDRESS__) || defined(QRM_THREAD_SANITIZER)
  return full / 10;
#else
  return full;
#endif
}

/// The number in the environment's `variable`, where it is set; 0 when that is not a number, so
/// that a test that counts its rounds fails.
inline int RoundsBy(const char* variable, int otherwise) {
  const char* const wanted = std::getenv(variable);
  return wanted == nullptr ? otherwise : ParseNumber<int>(wanted).value_or(0);
}

}  // namespace qrm::test
