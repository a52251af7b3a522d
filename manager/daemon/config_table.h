// The table of configuration keys, collected from the rooms with options, and read from a file and
// from flags.
#pragma once

#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/status.h"
#include "api/resource.h"
#include "manager/daemon/config.h"

namespace qrm::manager {

/// A section of the reference.
struct KeyGroup {
  std::string title;
  std::vector<config::ConfigKey> keys;
};

/// All keys, in the order of the reference. They read and write `config`, which outlives them.
std::vector<KeyGroup> GroupedConfigKeys(Config& config);

/// All keys without the groups.
std::vector<config::ConfigKey> ConfigKeys(Config& config);

/// The flags of all keys, for --help.
std::string ConfigFlagsHelp();

/// A page in Markdown with every key, its default, range and meaning.
std::string ConfigReference();

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
