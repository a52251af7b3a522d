// Waiting for something that another thread or process does.
#pragma once

#include <chrono>
#include <thread>

namespace qrm::test {

/// True as soon as `condition()` holds; false when it does not within `limit`.
template <typename Condition>
bool Await(Condition condition, std::chrono::milliseconds limit = std::chrono::seconds(10)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) {
      return condition();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace qrm::test
