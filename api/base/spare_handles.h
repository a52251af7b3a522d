// File handles that a listener keeps back for the time when the process has no others.
#pragma once

#include <array>

namespace qrm {

/// Holds handles that it can give back at once, so that the next accept(2) succeeds: clients that
/// look after the process get answers although it, or the machine, has no handle left.
///
/// Threads: one at a time.
class SpareHandles {
 public:
  SpareHandles() { Refill(); }
  ~SpareHandles() { Release(); }
  SpareHandles(const SpareHandles&) = delete;
  SpareHandles& operator=(const SpareHandles&) = delete;

  /// Closes all; false when there was none.
  bool Release();
  /// Opens those that are missing; false while the limit allows fewer.
  bool Refill();

 private:
  static constexpr int kNone = -1;
  /// One for the connection, the others for the files that its answer reads.
  std::array<int, 4> handles_{kNone, kNone, kNone, kNone};
};

}  // namespace qrm
