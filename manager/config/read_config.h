// Reads the configuration from a file and from flags.
#pragma once

#include <string>

#include "api/base/status.h"
#include "api/resource.h"
#include "manager/daemon/config.h"

namespace qrm::manager {

/// The configuration of `file` (none: the defaults) with `flags` in place of what it says; a flag
/// is a key and its value as YAML, or a list with commas.
/// Errors: kInvalidArgument with file, line, key, value and what is allowed; kNotFound for a
/// missing file.
StatusOr<Config> ReadConfig(const std::string& file, const StringMap& flags);

/// The same of a file that holds `text`, wherever it is.
StatusOr<Config> ReadConfigText(const std::string& text, const std::string& file,
                                const StringMap& flags);

/// True for the name of a key.
bool IsConfigKey(const std::string& name);

/// The key that `name` was probably meant to be; empty when none is near.
std::string NearestConfigKey(const std::string& name);

}  // namespace qrm::manager
