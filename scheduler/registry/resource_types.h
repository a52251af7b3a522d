// The extended resources that this program has.
#pragma once

#include <string>
#include <vector>

#include "scheduler/cache/handle.h"

namespace qrm::scheduler {

/// The type that pods are judged by unless configured.
inline constexpr char kStandardResource[] = "numa";

/// By type, what makes their handles.
const HandleFactories& ResourceFactories();

std::vector<std::string> ResourceTypes();

/// `types` are some of ResourceTypes().
HandleRegistry RegisterResources(const std::vector<std::string>& types);

}  // namespace qrm::scheduler
