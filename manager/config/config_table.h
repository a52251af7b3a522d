// The table of configuration keys, collected from the rooms with options.
#pragma once

#include <string>
#include <vector>

#include "api/base/config_key.h"
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

}  // namespace qrm::manager
