// The part of a plugin's exported state that all plugins have: what each container was given.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plugins/sdk/resource_plugin.h"

namespace qrm::rules {

/// Pod UID -> container name -> who it is and what it was given, with the field names of the
/// plugin API.
nlohmann::ordered_json PodEntriesJson(const sdk::Grants& grants);

}  // namespace qrm::rules
