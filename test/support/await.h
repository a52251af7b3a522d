// Waiting for something that another thread or process does.
#pragma once

#include <chrono>
#include <thread>

namespace qrm::test {

/// True as soon as `condition()` holds; false when it does not within `limit`. It is asked once a
/// `period`: conditions that call servers with a limit of calls need a longer one.
template <typename Condition>
bool Await(Condition condition, std::chrono::milliseconds limit = std::chrono::seconds(10),
           std::chrono::milliseconds period = std::chrono::milliseconds(1)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) {
      return condition();
    }
    std::this_thread::sleep_for(period);
  }
  return true;
}

}  // namespace qrm::test
