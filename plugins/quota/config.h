// The operator's configuration of cpu-quota classes.
#pragma once

#include <map>
#include <string>

#include "api/base/section.h"
#include "api/base/status.h"

namespace qrm::quota {

/// How a class changes kubelet's quota.
struct QuotaClass {
  bool is_lifted = false;  ///< no quota
  int burst_percent = 0;   ///< the part of the quota that may be saved and used later; 0 to 100

  bool operator==(const QuotaClass&) const = default;
};

/// Reads `classes: {NAME: {quota: none}, NAME: {burst: 50%}}`. Errors: kInvalidArgument with file,
/// line and key for anything else.
StatusOr<std::map<std::string, QuotaClass>> ParseConfig(const config::Section& file);

/// "quota none" or "burst 50%".
std::string ToString(const QuotaClass& of);

}  // namespace qrm::quota
