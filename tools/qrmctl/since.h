// Reads how far back a listing goes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "api/base/config_key.h"

namespace qrm::manager::cli {

/// The word for all that is remembered.
inline constexpr char kEver[] = "ever";

/// The time `ago` before now. Units: milliseconds since 1970; absent for a text that is not
/// a duration.
inline std::optional<int64_t> SinceOf(const std::string& ago) {
  if (ago == kEver) {
    return 0;
  }
  const auto duration = config::ParseDuration(ago);
  if (!duration.has_value()) {
    return std::nullopt;
  }
  const auto since = std::chrono::system_clock::now() - *duration;
  return std::chrono::duration_cast<std::chrono::milliseconds>(since.time_since_epoch()).count();
}

}  // namespace qrm::manager::cli
