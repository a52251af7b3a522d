// The part of a plugin's exported state that all plugins have: the allocation of each container.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plugins/sdk/resource_plugin.h"

namespace qrm::placement {

/// Pod UID -> container name -> its attributes and allocation, with the field names of the plugin
/// API.
nlohmann::ordered_json PodEntriesJson(const sdk::Grants& grants);

}  // namespace qrm::placement
