// The level and the form of log lines, as they are and as text.
#pragma once

#include <string_view>

#include "api/base/log_level.h"
#include "api/base/status.h"

namespace qrm::log {

/// Lines below it are dropped. Threads: any.
Level CurrentLevel();

/// The word that ParseLevel takes.
std::string_view ToString(Level level);

/// A line for people, or a JSON object with time, level, event and a text for each field.
enum class Form { kText, kJson };

/// Of all lines from now on. Before other threads log.
void SetForm(Form form);

/// "text" or "json". Errors: kInvalidArgument naming them.
StatusOr<Form> ParseForm(std::string_view text);

}  // namespace qrm::log
