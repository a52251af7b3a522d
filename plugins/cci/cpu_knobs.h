// The machine's settings of CPUs, and the values that attributes set: values in, values out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "plugins/cci/attribute.h"
#include "plugins/host/claim.h"
#include "plugins/host/cpu_frequency.h"
#include "plugins/host/host_files.h"
#include "plugins/host/interrupts.h"

namespace qrm::cci {

/// The settings that this process may change. Source: the kernel's admin-guide/pm, ABI/testing/
/// sysfs-devices-system-cpu.
struct CpuKnobs {
  std::vector<host::FrequencyPolicy> policies;
  CpuSet idle_latency;           ///< CPUs whose longest wake-up time can be set
  std::map<int, int64_t> ranks;  ///< CPU -> rank, if cores differ in speed; higher is faster
  host::Interrupts interrupts;
  bool partitions = false;  ///< whether a container's cgroup can be a partition
};

/// Cost: some files for each CPU and interrupt.
CpuKnobs ReadCpuKnobs(const host::HostFiles& files, const CpuSet& cpus);

/// Whether an attribute sets anything on the machine.
bool IsKnob(const Attribute& attribute);

/// OK if `attribute` can be set for `cpus` in a container that has `own`. Errors:
/// kFailedPrecondition with what is missing, and what to do.
Status CheckKnob(const Attribute& attribute, const CpuSet& cpus, const CpuSet& own,
                 const CpuKnobs& knobs);

/// The values for no-balance in a container's `cgroup` and its ancestors; `cgroup` is "/a/b" as in
/// ComputeInstance. Source: "Remote partition" in the kernel's admin-guide/cgroup-v2.
std::vector<host::Claim> PartitionClaims(const std::string& cgroup, const CpuSet& cpus);

/// The values that `attributes` of `cpus` set outside the cgroup, in the order of writing.
std::vector<host::Claim> ClaimsOf(const std::vector<Attribute>& attributes, const CpuSet& cpus,
                                  const CpuKnobs& knobs);

}  // namespace qrm::cci
