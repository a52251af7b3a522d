// The configuration of qrm-cci-driver.
#pragma once

#include "api/base/section.h"
#include "api/base/status.h"
#include "plugins/cci/spec.h"

namespace qrm::cci {

/// Reads `policies: {NAME: {cores: ..., compute_attributes: ...}}`. Errors: kInvalidArgument with
/// file, line and key for anything else.
StatusOr<Policies> ParseConfig(const config::Section& file);

}  // namespace qrm::cci
