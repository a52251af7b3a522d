// How many CPUs pools should have by what their containers do.
#pragma once

#include <map>
#include <string>

#include "plugins/cpu/config/advisor_config.h"

namespace qrm::cpu {

/// What containers did between two looks.
struct Use {
  double cpus = 0;     ///< that they ran on, on average
  double stalled = 0;  ///< the share of time in which some thread waited for a CPU: 0 to 1
};

/// What pods did, by UID.
using UseByPod = std::map<std::string, Use>;

/// CPUs for a pool of `size` CPUs whose containers do `use` and request `requested`: so many that
/// they are busy as `rule` says, and some more than it has where threads wait all the same. One
/// that needs more than it has gets at least what is requested.
int WishByUse(const UseRule& rule, const Use& use, int size, int requested);

}  // namespace qrm::cpu
