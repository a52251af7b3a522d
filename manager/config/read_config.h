// Reads the configuration from a file and from flags.
#pragma once

#include <string>

#include "api/base/status.h"
#include "api/resource.h"
#include "manager/daemon/config.h"

namespace qrm::manager {

/// The configuration in `file` (empty: the defaults). `flags` override the file: each is a key and
/// its value, which is YAML or a list with commas.
/// Errors: kInvalidArgument with file, line, key, value and what is allowed; kNotFound for a
/// missing file.
StatusOr<Config> ReadConfig(const std::string& file, const StringMap& flags);

/// The same from `text`. Errors call it `file`, which is not opened.
StatusOr<Config> ReadConfigText(const std::string& text, const std::string& file,
                                const StringMap& flags);

/// Whether `name` is a key.
bool IsConfigKey(const std::string& name);

/// The key that a misspelt `name` probably means; empty if no key is similar.
std::string NearestConfigKey(const std::string& name);

}  // namespace qrm::manager
