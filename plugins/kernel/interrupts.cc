// Reads the kernel's interrupt files.
#include "plugins/kernel/interrupts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/base/number.h"
#include "plugins/kernel/irqbalance.h"

namespace qrm::kernel {
namespace {

constexpr char kInterrupts[] = "proc/irq";
constexpr char kAffinity[] = "/smp_affinity_list";  // in an interrupt's directory
constexpr char kDefaultAffinity[] = "proc/irq/default_smp_affinity";

/// The CPUs that handle the interrupt of `directory`; empty if unknown.
CpuSet HandlersOf(const std::string& directory, const KernelFiles& files) {
  const std::string text = files.Read(directory + "/effective_affinity_list").value_or("");
  return CpuSet::Parse(text).value_or(CpuSet());
}

/// Adds an interrupt that cannot be moved. Its name includes its handlers, which are the
/// subdirectories.
void NoteFixed(const KernelFiles& files, const std::string& directory, Interrupts& interrupts) {
  CpuSet cpus = HandlersOf(directory, files);
  if (cpus.Empty()) {
    return;
  }
  std::string name = directory.substr(directory.rfind('/') + 1);
  for (const std::string& entry : files.List(directory)) {
    if (!files.List(fmt::format("{}/{}", directory, entry)).empty() ||
        !files.Read(fmt::format("{}/{}", directory, entry)).ok()) {
      name += " " + entry;
    }
  }
  interrupts.fixed.push_back({.name = name, .cpus = std::move(cpus)});
}

/// Each interrupt has a directory.
void ReadAffinities(const KernelFiles& files, Interrupts& interrupts) {
  if (!files.MayWrite(kDefaultAffinity)) {
    return;
  }
  for (const std::string& number : files.List(kInterrupts)) {
    const std::string directory = fmt::format("{}/{}", kInterrupts, number);
    if (!ParseNumber<int>(number).has_value()) {
      continue;
    }
    if (files.MayWrite(directory + kAffinity)) {
      interrupts.movable.push_back(directory);
    } else {
      NoteFixed(files, directory, interrupts);
    }
  }
}

}  // namespace

Interrupts ReadInterrupts(const KernelFiles& files) {
  Interrupts interrupts;
  ReadAffinities(files, interrupts);
  for (const std::string& process : FindBalancers(files)) {
    interrupts.balancers.push_back(
        {.process = process, .takes_bans = files.MayWrite(BanFile(process))});
  }
  return interrupts;
}

std::vector<Claim> QuietClaims(const CpuSet& cpus, const Interrupts& interrupts) {
  // Balancers get their bans before interrupts are moved.
  std::vector<Claim> claims;
  claims.reserve(interrupts.balancers.size() + 1 + interrupts.movable.size());
  for (const Balancer& balancer : interrupts.balancers) {
    claims.push_back(BanClaim(balancer.process, ToString(cpus)));
  }
  // The default applies to interrupts that appear later.
  claims.push_back(
      {.path = kDefaultAffinity, .form = ClaimForm::kCpuMask, .value = ToString(cpus)});
  for (const std::string& directory : interrupts.movable) {
    claims.push_back({.path = directory + kAffinity,
                      .form = ClaimForm::kCpuList,
                      .value = ToString(cpus),
                      .is_optional = true});
  }
  return claims;
}

void ProbeInterrupts(KernelFiles& files, Interrupts& interrupts) {
  std::erase_if(interrupts.movable, [&](const std::string& directory) {
    const StatusOr<std::string> now = files.Read(directory + kAffinity);
    const bool is_fixed = now.ok() && !files.Write(directory + kAffinity, *now).ok();
    if (is_fixed) {
      NoteFixed(files, directory, interrupts);
    }
    return is_fixed;
  });
}

std::map<std::string, std::string> QuietOwners(const JournalRecords& records) {
  const auto record = std::find_if(records.begin(), records.end(), [](const JournalRecord& of) {
    return of.path == kDefaultAffinity;
  });
  return record == records.end() ? std::map<std::string, std::string>() : record->claims;
}

bool IsHandledBy(const CpuSet& cpus, const std::string& path, const KernelFiles& files) {
  const CpuSet handlers = HandlersOf(path.substr(0, path.rfind('/')), files);
  return !handlers.Empty() && handlers.IsSubsetOf(cpus);
}

Claim BanClaim(const std::string& process, const std::string& cpus) {
  return {.path = BanFile(process), .form = ClaimForm::kCpuUnion, .value = cpus};
}

}  // namespace qrm::kernel
