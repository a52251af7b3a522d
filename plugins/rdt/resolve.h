// Computes the schemata of each class from the configuration and the machine's resources.
#pragma once

#include <map>
#include <string>

#include "api/base/status.h"
#include "plugins/rdt/config.h"
#include "plugins/rdt/resctrl.h"
#include "plugins/rdt/schemata.h"

namespace qrm::rdt {

/// The schemata to write for each class. Partitions are exclusive parts of a cache, rounded down,
/// from bit 0 upwards in the order of their names. Classes are inside their partition and rounded
/// up. Each class has the whole of a resource that no partition divides. Errors: kInvalidArgument
/// for conflicting requests, and for an exclusive partition with ways of the root group,
/// kFailedPrecondition for a missing resource that is not optional; both name the partition or
/// class, and the cache id. Source: goresctrl's rules; an empty set is an error instead of a
/// division by zero.
StatusOr<std::map<std::string, Schemata>> Resolve(const RdtConfig& config, const RdtInfo& info);

/// The classes whose percentages of memory bandwidth are below what the machine can give, and how
/// much they get instead: one sentence; empty if there are none.
std::string RaisedBandwidth(const RdtConfig& config, const RdtInfo& info);

/// Whether the root group has some of the ways of class `name` in `schemata`. Without kRootClass,
/// the root group has all ways.
bool SharesWithRoot(const std::map<std::string, Schemata>& schemata, const std::string& name,
                    const RdtInfo& info);

/// The kernel's values after `written` was written: it rounds percentages of bandwidth up.
Schemata AsShown(Schemata written, const RdtInfo& info);

}  // namespace qrm::rdt
