// How often tests repeat what a sanitizer makes slow.
#pragma once

namespace qrm::test {

/// `full`, or a tenth of it under a sanitizer, which takes ten times as long for each round.
constexpr int Rounds(int full) {
#if defined(__SANITIZE_ADDRESS__) || defined(QRM_THREAD_SANITIZER)
  return full / 10;
#else
  return full;
#endif
}

}  // namespace qrm::test
