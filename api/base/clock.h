// Clocks and deadlines: time is passed in, so that tests can stop it.
#pragma once

#include <chrono>

namespace qrm {

/// The moment by which an answer must be there; compared on the steady clock.
using Deadline = std::chrono::steady_clock::time_point;

/// Where the program reads the time. Threads: any.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::chrono::system_clock::time_point Now() const = 0;
  virtual std::chrono::steady_clock::time_point Steady() const = 0;
};

/// The machine's clocks.
class SystemClock final : public Clock {
 public:
  std::chrono::system_clock::time_point Now() const override {
    return std::chrono::system_clock::now();
  }
  std::chrono::steady_clock::time_point Steady() const override {
    return std::chrono::steady_clock::now();
  }
};

inline Deadline DeadlineAfter(std::chrono::steady_clock::duration budget) {
  return std::chrono::steady_clock::now() + budget;
}

}  // namespace qrm
