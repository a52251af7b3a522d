// Pictures in pixels.
#pragma once

#include <string>

#include "api/base/status.h"

namespace qrm::manager::cli {

/// `svg` as PNG, drawn by the program rsvg-convert, which brings the letters that a library would
/// have to. Errors: kFailedPrecondition with the package that has it; kInternal when it fails.
StatusOr<std::string> PngOf(const std::string& svg);

}  // namespace qrm::manager::cli
