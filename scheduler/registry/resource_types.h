// The extended resources that this program has.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scheduler/cache/handle.h"

namespace qrm::scheduler {

/// By type, what makes their handles.
const std::map<std::string, HandleRegistry::Factory>& ResourceFactories();

std::vector<std::string> ResourceTypes();

/// `types` are some of ResourceTypes().
HandleRegistry RegisterResources(const std::vector<std::string>& types);

}  // namespace qrm::scheduler
