// Reads a Machine with hwloc: from this machine, a sysfs copy, an XML file or a synthetic
// description.
#pragma once

#include <string>
#include <string_view>

#include "api/status.h"
#include "topology/machine.h"

namespace qrm {

/// Where the machine is described.
struct MachineSource {
  enum class Kind { kLive, kFsRoot, kXml, kSynthetic };
  Kind kind = Kind::kLive;
  std::string argument;  ///< directory, file or description; empty for kLive

  /// Reads `live`, `fsroot:DIR`, `xml:FILE` or `synthetic:DESCRIPTION`. Errors: kInvalidArgument
  /// naming the forms.
  static StatusOr<MachineSource> Parse(std::string_view text);
};

/// The machine that `source` describes. Wrong or missing firmware information ends in
/// MachineParts::warnings, not in an error. Errors: kNotFound for a missing file or directory,
/// kInvalidArgument for one that hwloc cannot read. Source: hwloc 2.9, hwloc_topology_load(3).
StatusOr<Machine> Discover(const MachineSource& source);

}  // namespace qrm
