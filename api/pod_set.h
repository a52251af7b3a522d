// A set of pods.
#pragma once

#include <set>

#include "api/base/shared_text.h"

namespace qrm {

/// By their UIDs.
using PodSet = std::set<SharedText, std::less<>>;

}  // namespace qrm
