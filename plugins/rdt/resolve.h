// From the configuration and what the machine offers to the schemata of each class: pure.
#pragma once

#include <map>
#include <string>

#include "api/base/status.h"
#include "plugins/rdt/config.h"
#include "plugins/rdt/info.h"
#include "plugins/rdt/schemata.h"

namespace qrm::rdt {

/// The schemata of each class, as they are to be written. Partitions are exclusive parts of a
/// cache, from bit 0 upwards in the order of their names and rounded down; classes lie inside their
/// partition and are rounded up. A resource of the machine that no partition divides is whole for
/// each class.
/// Errors: kInvalidArgument for what does not fit together, kFailedPrecondition for a resource that
/// the machine lacks and that is not optional; both name partition or class, and cache id.
/// Source: goresctrl's rules; sets without a single bit are an error instead of a division by zero.
StatusOr<std::map<std::string, Schemata>> Resolve(const RdtConfig& config, const RdtInfo& info);

/// What the kernel shows after `written` was written: it rounds percents of bandwidth up.
Schemata AsShown(Schemata written, const RdtInfo& info);

}  // namespace qrm::rdt
