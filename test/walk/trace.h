// The file in which the recorder notes what the functions of a process do, for the program that
// plays steps with it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace qrm::test {

/// A function began, or ended.
struct TraceEvent {
  uint64_t address;  ///< of the function in its program, wherever that was loaded; 0: it ended
  int64_t time;      ///< of the steady clock, in nanoseconds
  int64_t thread;
};

/// Mapped by both processes.
struct Trace {
  static constexpr std::size_t kMost = std::size_t{1} << 20;

  std::atomic<bool> is_on;
  std::atomic<uint64_t> count;  ///< of events, also of those beyond kMost
  TraceEvent events[kMost];
};

}  // namespace qrm::test
