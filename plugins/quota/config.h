// The classes of the type cpu-quota, as the operator writes them.
#pragma once

#include <map>
#include <string>

#include "api/base/section.h"
#include "api/base/status.h"

namespace qrm::quota {

/// What a class makes of the quota that kubelet gives.
struct QuotaClass {
  bool is_lifted = false;  ///< there is none
  int burst_percent = 0;   ///< of it, which may be saved up and used later; 0 to 100

  bool operator==(const QuotaClass&) const = default;
};

/// Reads `classes: {NAME: {quota: none}, NAME: {burst: 50%}}`. Errors: kInvalidArgument with file,
/// line and key for anything else.
StatusOr<std::map<std::string, QuotaClass>> ParseConfig(const config::Section& file);

/// "quota none" or "burst 50%".
std::string ToString(const QuotaClass& of);

}  // namespace qrm::quota
