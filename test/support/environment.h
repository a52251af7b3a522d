// What a script passes to the test that it starts.
#pragma once

#include <cstdlib>
#include <string>

namespace qrm::test {

/// Empty when the variable is not set.
inline std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace qrm::test
