// The machine's interrupts, and the claims that keep them off CPUs: values in, values out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/id_set.h"
#include "plugins/kernel/claim.h"
#include "plugins/kernel/kernel_files.h"
#include "plugins/kernel/kernel_values.h"

namespace qrm::kernel {

/// An interrupt that the kernel does not allow to be moved.
struct FixedInterrupt {
  std::string name;  ///< "36 virtio1-req.0"
  CpuSet cpus;       ///< the CPUs that handle it
};

/// A process that moves interrupts, such as irqbalance.
struct Balancer {
  std::string process;
  bool takes_bans = false;  ///< accepts a list of CPUs to avoid
};

/// A machine's interrupts, as far as this process may move them.
struct Interrupts {
  std::vector<std::string> movable;  ///< their directories below the root
  std::vector<FixedInterrupt> fixed;
  std::vector<Balancer> balancers;
};

/// Cost: some files for each interrupt and process. Source: the kernel's
/// core-api/irq/irq-affinity.
Interrupts ReadInterrupts(const KernelFiles& files);

/// Finds interrupts that only seem movable, such as kernel-managed interrupts before Linux 6.12, by
/// writing each interrupt's current CPUs.
void ProbeInterrupts(KernelFiles& files, Interrupts& interrupts);

/// The claims that keep `cpus` quiet, in the order of writing.
std::vector<Claim> QuietClaims(const CpuSet& cpus, const Interrupts& interrupts);

/// Whether only `cpus` handle the interrupt with the affinity file at `path`; false if unknown.
bool IsHandledBy(const CpuSet& cpus, const std::string& path, const KernelFiles& files);

/// The claim that keeps the balancer `process` off the quiet CPUs `cpus`.
Claim BanClaim(const std::string& process, const std::string& cpus);

/// The owners of quiet CPUs in `records`, with their CPUs.
std::map<std::string, std::string> QuietOwners(const JournalRecords& records);

}  // namespace qrm::kernel
