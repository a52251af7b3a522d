// Reads hwloc's XML exports without hwloc: its importer crashes on bad ones, and that of Debian 12
// does not know format 3.
#pragma once

#include <string_view>

#include "api/base/status.h"
#include "topology/machine_objects.h"

namespace qrm {

/// The objects that `xml` describes, in format 1, 2 or 3 of hwloc's exports. Of the distances,
/// those named NUMALatency; kinds of cores rank in their order, as hwloc writes them.
/// Errors: kInvalidArgument with the problem and its byte.
/// Units: memory in bytes, distances as in the SLIT. Cost: O(size).
/// Source: hwloc 2.9 hwloc2.dtd and 3.0 hwloc/export.h.
StatusOr<MachineObjects> ReadXml(std::string_view xml);

}  // namespace qrm
