// What a machine can set of its CPUs, and what attributes set of it: values in, values out.
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

/// What this process may set. Source: the kernel's admin-guide/pm, ABI/testing/
/// sysfs-devices-system-cpu.
struct CpuKnobs {
  std::vector<host::FrequencyPolicy> policies;
  CpuSet idle_latency;           ///< CPUs whose longest time to wake up can be set
  std::map<int, int64_t> ranks;  ///< of CPUs whose cores differ in speed: the higher, the faster
  host::Interrupts interrupts;
  bool partitions = false;  ///< whether a container's cgroup can be a partition of its own
};

/// Cost: some files for each CPU and interrupt.
CpuKnobs ReadCpuKnobs(const host::HostFiles& files, const CpuSet& cpus);

/// Whether an attribute sets anything on the machine.
bool IsKnob(const Attribute& attribute);

/// OK when `attribute` can be set for `cpus`, of a container that has `own`. Errors:
/// kFailedPrecondition with what is missing, and the cure.
Status CheckKnob(const Attribute& attribute, const CpuSet& cpus, const CpuSet& own,
                 const CpuKnobs& knobs);

/// What a container that is not balanced sets of its cgroup and of those above it, which is "/a/b"
/// as in ComputeInstance. Source: "Remote partition" in the kernel's admin-guide/cgroup-v2.
std::vector<host::Claim> PartitionClaims(const std::string& cgroup, const CpuSet& cpus);

/// What `attributes` of `cpus` set but for the cgroup, in the order in which it is to be written.
std::vector<host::Claim> ClaimsOf(const std::vector<Attribute>& attributes, const CpuSet& cpus,
                                  const CpuKnobs& knobs);

}  // namespace qrm::cci
