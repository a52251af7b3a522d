// The machine of an hwloc XML text, without a file.
#pragma once

#include <string_view>
#include <utility>

#include "topology/machine_objects.h"

namespace qrm::test {

/// What Discover makes of a file with the text `xml`. Errors: those of ReadXml and PartsOf.
inline StatusOr<Machine> MachineFromXml(
    std::string_view xml,
    MachineSource::OutsideCpuset outside_cpuset = MachineSource::OutsideCpuset::kHide) {
  QRM_ASSIGN_OR_RETURN(MachineObjects objects, ReadXml(xml));
  QRM_ASSIGN_OR_RETURN(MachineParts parts, PartsOf(std::move(objects), outside_cpuset));
  return Machine(std::move(parts));
}

}  // namespace qrm::test
