// Reads percentages of configuration files.
#pragma once

#include <string_view>

#include "api/base/section.h"
#include "api/base/status.h"

namespace qrm::cpu {

/// `10%` or `10`, from 1 to `most`; `fallback` is a percentage, too.
StatusOr<int> ReadPercent(const config::Section& section, std::string_view key, int fallback,
                          int most);

}  // namespace qrm::cpu
