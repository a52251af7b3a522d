// The table of configuration keys, assembled from the rooms that own the options.
#pragma once

#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "manager/daemon/config.h"

namespace qrm::manager {

/// Keys that a reader of the reference looks for together.
struct KeyGroup {
  std::string title;
  std::vector<config::ConfigKey> keys;
};

/// All keys, in the order of the reference, with their places in `config`, which outlives them.
std::vector<KeyGroup> GroupedConfigKeys(Config& config);

/// The same without the groups.
std::vector<config::ConfigKey> ConfigKeys(Config& config);

/// The flags of all keys, one a line, for --help.
std::string ConfigFlagsHelp();

/// A page in Markdown with every key, its default, range and meaning.
std::string ConfigReference();

}  // namespace qrm::manager
