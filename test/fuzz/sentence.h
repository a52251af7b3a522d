// Checks that errors about foreign text are one line that a terminal only shows.
#pragma once

#include <string>

#include "api/base/check.h"
#include "api/base/foreign_text.h"
#include "api/base/status.h"

namespace qrm::fuzz {

inline void CheckSentence(const Status& status) {
  constexpr std::size_t kMostBytes = 4096;
  const std::string message = MessageOf(status);
  QRM_CHECK(!message.empty() && message.size() <= kMostBytes && Escaped(message) == message);
}

}  // namespace qrm::fuzz
