// Reads a program's configuration from a file and from flags.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/status.h"

namespace qrm::config {

using Keys = std::vector<ConfigKey>;

struct ConfigSources {
  std::string file;                          ///< empty: none
  std::optional<std::string> text;           ///< of that file, which is not read then
  std::map<std::string, std::string> flags;  ///< by key, its value as YAML or a list with commas
};

/// Reads the file, then the flags, into the keys' places. `program` is named in what to do about
/// unknown keys. Errors: kInvalidArgument with file, line, key, value and what is allowed;
/// kNotFound for a missing file.
Status ReadKeys(const ConfigSources& sources, const Keys& keys, const std::string& program);

/// Null when no key has that name.
const ConfigKey* FindKey(const Keys& keys, const std::string& name);

/// The key that `name` was probably meant to be; empty when none is near.
std::string NearestKey(const Keys& keys, const std::string& name);

}  // namespace qrm::config
