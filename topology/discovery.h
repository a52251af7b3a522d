// Reads a Machine with hwloc: from this machine, a sysfs copy, an XML file or a synthetic
// description.
#pragma once

#include <string>
#include <string_view>

#include "api/base/status.h"
#include "topology/machine.h"

namespace qrm {

/// Where the machine is described. Source: hwloc 2.9, hwloc_topology_set_xml(3),
/// hwloc_topology_set_synthetic(3) and "Environment Variables".
struct MachineSource {
  enum class Kind { kLive, kFsRoot, kXml, kSynthetic, kDescribed };
  /// What becomes of CPUs and NUMA nodes outside the cpuset of this process (or of the process
  /// that wrote the description).
  enum class OutsideCpuset {
    kHide,  ///< left out, as lstopo does: the machine is what this process may use
    kKeep,  ///< part of the machine: for a daemon that places others' processes and whose own
            ///< cpuset may be a pool that it manages itself
  };

  Kind kind = Kind::kLive;
  std::string argument;  ///< directory, file, description or MachineText; empty for kLive
  OutsideCpuset outside_cpuset = OutsideCpuset::kHide;

  /// Reads `live`, `fsroot:DIR`, `xml:FILE`, `synthetic:DESCRIPTION` or `described:TEXT`, which is
  /// one of MachineText. Cost: O(length).
  /// Errors: kInvalidArgument naming the forms. Source: hwloc(7), "Synthetic topologies",
  /// for DESCRIPTION.
  static StatusOr<MachineSource> Parse(std::string_view text);
};

/// The machine that `source` describes. Wrong or missing firmware information ends in
/// MachineParts::warnings, not in an error. XML is read in the formats of hwloc 1, 2 and 3.
///
/// Threads: kLive, kXml and kSynthetic any; kFsRoot while no other thread reads the environment,
///          because hwloc takes that directory from an environment variable only.
/// Errors:  kNotFound for a missing file or directory, kInvalidArgument for one that hwloc cannot
///          read or that describes no usable CPU.
/// Cost:    milliseconds (live, fsroot: hundreds of small files); O(size) for XML and synthetic.
/// Units:   as in Machine: bytes, the kernel's numbers, distances as in the SLIT.
/// Source:  hwloc 2.9, hwloc_topology_load(3) and "Environment Variables".
StatusOr<Machine> Discover(const MachineSource& source);

}  // namespace qrm
