// Errors with formatted messages, and what formats: for sources, where headers include status.h.
#pragma once

#include <utility>

#include <fmt/core.h>

#include "api/base/status.h"

namespace qrm {

/// An error with a formatted message: `cannot <do what>: <cause>; <remedy>`.
template <typename... Args>
Status Errorf(StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace qrm
