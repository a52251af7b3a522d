// How many CPUs pools should have, by the CPU use of their containers.
#pragma once

#include <map>
#include <string>

#include "plugins/cpu/config/advisor_config.h"

namespace qrm::cpu {

/// What containers used between two measurements.
struct Use {
  double cpus = 0;     ///< CPUs that they ran on, on average
  double stalled = 0;  ///< the part of the time in which some thread waited for a CPU: 0 to 1
};

/// What pods used, by UID.
using UseByPod = std::map<std::string, Use>;

/// The CPUs on which containers that use `use` are as busy as `rule` says; all if threads wait.
int CpusFor(const UseRule& rule, const Use& use);

/// CPUs for a pool of `size` CPUs whose containers use `use` and request `requested`. They are to
/// be as busy as `rule` says; if threads still wait, the pool gets more than it has. A pool that
/// needs more than it has gets at least what is requested.
int WishByUse(const UseRule& rule, const Use& use, int size, int requested);

}  // namespace qrm::cpu
