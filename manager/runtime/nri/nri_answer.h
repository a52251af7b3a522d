// The event that reports how long the container runtime waited for an answer.
#pragma once

#include <chrono>
#include <string>

namespace qrm::manager {

/// An answer that the runtime waited for while a handler of RuntimeEvents decided.
struct NriAnswer {
  std::string call;                  ///< as in NRI: "CreateContainer"
  std::chrono::nanoseconds took{0};  ///< from the request's last byte to the answer
  bool decided = false;              ///< false: the time was over before the handler replied
};

}  // namespace qrm::manager
