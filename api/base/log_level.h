// The level of the log, as it is and as text.
#pragma once

#include <string_view>

#include "api/base/log.h"

namespace qrm::log {

/// Lines below it are dropped. Threads: any.
Level CurrentLevel();

/// The word that ParseLevel takes.
std::string_view ToString(Level level);

}  // namespace qrm::log
