// Which log lines are written.
#pragma once

#include <string_view>

#include "api/base/status.h"

namespace qrm::log {

enum class Level { kDebug, kInfo, kWarning, kError };

/// "debug", "info", "warning" or "error". Errors: kInvalidArgument naming the accepted words.
StatusOr<Level> ParseLevel(std::string_view text);

}  // namespace qrm::log
