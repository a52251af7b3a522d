// Reads the configuration keys whose values are more than a word: lists, mappings, choices.
#pragma once

#include <string>

#include "api/base/section.h"
#include "api/base/status.h"
#include "manager/config/config.h"

namespace qrm::manager {

/// Each takes the value of `key`, which `section` has, into its place in `config`.
/// Errors: kInvalidArgument with file, line, key, value and what is allowed.
Status ReadBuiltinPlugins(const config::Section& section, const std::string& key, Config& config);
Status ReadPlugins(const config::Section& section, const std::string& key, Config& config);
Status ReadMachineKeys(const config::Section& section, const std::string& key, Config& config);
Status ReadTopologyPolicy(const config::Section& section, const std::string& key, Config& config);
Status ReadTopologyScope(const config::Section& section, const std::string& key, Config& config);
Status ReadNamesMap(const config::Section& section, const std::string& key, Config& config);
Status ReadImplicitResources(const config::Section& section, const std::string& key,
                             Config& config);
Status ReadControlUids(const config::Section& section, const std::string& key, Config& config);
Status ReadPodResourcesGroup(const config::Section& section, const std::string& key,
                             Config& config);
Status ReadKubeletUrl(const config::Section& section, const std::string& key, Config& config);
Status ReadLogLevel(const config::Section& section, const std::string& key, Config& config);
Status ReadRealtimePriority(const config::Section& section, const std::string& key, Config& config);
Status ReadNriIndex(const config::Section& section, const std::string& key, Config& config);
Status ReadAlignResources(const config::Section& section, const std::string& key, Config& config);
Status ReadClosestNodes(const config::Section& section, const std::string& key, Config& config);

}  // namespace qrm::manager
