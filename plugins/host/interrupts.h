// Interrupts of the machine, and what keeps them off CPUs: values in, values out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/id_set.h"
#include "plugins/host/claim.h"
#include "plugins/host/host_files.h"
#include "plugins/host/journal.h"

namespace qrm::host {

/// An interrupt that the kernel does not let anybody move.
struct FixedInterrupt {
  std::string name;  ///< "36 virtio1-req.0"
  CpuSet cpus;       ///< where it is handled
};

/// A process that moves interrupts on its own.
struct Balancer {
  std::string process;
  bool takes_bans = false;  ///< can be told to leave CPUs alone
};

/// Those of a machine, as far as this process may move them.
struct Interrupts {
  std::vector<std::string> movable;  ///< their directories below the root
  std::vector<FixedInterrupt> fixed;
  std::vector<Balancer> balancers;
};

/// Cost: some files for each interrupt and process. Source: the kernel's
/// core-api/irq/irq-affinity.
Interrupts ReadInterrupts(const HostFiles& files);

/// Finds interrupts that only look as if they could be moved, as those that the kernel manages do
/// before Linux 6.12: each is told to stay where it is.
void ProbeInterrupts(HostFiles& files, Interrupts& interrupts);

/// What keeps `cpus` quiet, in the order in which it is to be written.
std::vector<Claim> QuietClaims(const CpuSet& cpus, const Interrupts& interrupts);

/// Whether the interrupt whose affinity is in the file at `path` is handled by `cpus` alone; false
/// where that cannot be told.
bool IsHandledBy(const CpuSet& cpus, const std::string& path, const HostFiles& files);

/// What keeps the balancer in `process` off `cpus`, which are quiet.
Claim BanClaim(const std::string& process, const std::string& cpus);

/// The owners of quiet CPUs and the CPUs of each, as `records` say.
std::map<std::string, std::string> QuietOwners(const JournalRecords& records);

}  // namespace qrm::host
