// Reads a container's specification, chooses CPUs, and passes the result to the container.
#include "plugins/cci/cci_driver.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "plugins/cci/chooser.h"
#include "plugins/cci/cpu_knobs.h"
#include "plugins/kernel/interrupts.h"

namespace qrm::cci {
namespace {

constexpr int64_t kMilli = 1000;

/// The variable with the attributes of the whole container, for the program and for a restarted
/// driver.
constexpr char kToldContainer[] = "CCI_CONTAINER";

/// The environment variables for the container's program.
StringMap Told(const sdk::ComputeGrant& grant, const std::vector<Attribute>& container) {
  std::vector<std::string> parts;
  parts.reserve(grant.parts.size());
  for (const sdk::ComputePart& part : grant.parts) {
    const bool whole_pool = part.shared && part.cpus.Empty();
    parts.push_back(fmt::format("{} {}", whole_pool ? "*" : ToString(part.cpus), part.name));
  }
  StringMap told = {{"CCI_CPUS", ToString(grant.Cpus())},
                    {"CCI_PARTS", fmt::format("{}", fmt::join(parts, "; "))}};
  std::vector<std::string> unmet;
  unmet.reserve(grant.unmet.size());
  for (const sdk::UnmetWish& wish : grant.unmet) {
    unmet.push_back(wish.token);
  }
  if (!container.empty()) {
    told[kToldContainer] = ToString(container);
  }
  if (!unmet.empty()) {
    told["CCI_UNMET"] = fmt::format("{}", fmt::join(unmet, ", "));
  }
  return told;
}

/// The owner of host knobs.
std::string OwnerOf(const ContainerKey& key) {
  return key.pod_uid + "/" + key.container;
}

/// The attributes in effect for a part, from its name.
std::vector<Attribute> KeptBy(const sdk::ComputePart& part) {
  return ParseAttributes(part.name).value_or(std::vector<Attribute>());
}

/// The attributes in effect for the whole container, from its grant.
std::vector<Attribute> KeptByAll(const sdk::ComputeGrant& grant) {
  const auto told = grant.envs.find(kToldContainer);
  return told == grant.envs.end() ? std::vector<Attribute>()
                                  : ParseAttributes(told->second, AttributeScope::kContainer)
                                        .value_or(std::vector<Attribute>());
}

bool Has(const std::vector<Attribute>& attributes, AttributeKind kind) {
  return std::ranges::any_of(attributes,
                             [&](const Attribute& attribute) { return attribute.kind == kind; });
}

bool IsUnbalanced(const std::vector<Attribute>& attributes) {
  return Has(attributes, AttributeKind::kNoBalance);
}

bool IsQuiet(const std::vector<Attribute>& attributes) {
  return Has(attributes, AttributeKind::kNoIrq);
}

bool HasKnob(const std::vector<Attribute>& attributes) {
  return std::ranges::any_of(attributes, IsKnob);
}

CpuSet QuietCpus(const sdk::ComputeGrant& grant) {
  CpuSet quiet;
  for (const sdk::ComputePart& part : grant.parts) {
    quiet |= IsQuiet(KeptBy(part)) ? part.cpus : CpuSet();
  }
  return quiet;
}

/// OK if each interrupt that could not be moved is also handled by CPUs outside `quiet`.
Status CheckQuiet(const std::vector<kernel::Refusal>& refusals, const CpuSet& quiet,
                  const kernel::KernelFiles& files) {
  for (const kernel::Refusal& refusal : refusals) {
    if (kernel::IsHandledBy(quiet, refusal.path, files)) {
      return Errorf(StatusCode::kFailedPrecondition,
                    "no-irq is not possible: the interrupt of {} stays on CPUs {} ({}); write "
                    "no-irq? to accept it",
                    refusal.path.substr(0, refusal.path.rfind('/')), ToString(quiet),
                    refusal.reason);
    }
  }
  return OkStatus();
}

/// Both readings of a number that earlier versions would have read as a CPU that the container
/// could have; empty if there is none.
std::string BothReadings(const SpecLines& lines, const Room& room) {
  CpuSet bare;
  int before = 0;
  for (const SpecLine& line : lines) {
    if (line.is_bare && (!room.available.Has(line.any) || bare.Has(line.any))) {
      return "";
    }
    before += line.is_bare ? 1 : line.Count();
    bare |= line.is_bare ? CpuSet{line.any} : CpuSet();
  }
  if (bare.Empty() || before != room.cpus + (room.has_fraction ? 1 : 0)) {
    return "";
  }
  return fmt::format(
      "{} in cores means {} CPUs, no longer the CPU with number {}; write cpu:{} for that CPU",
      bare.First(), bare.First(), bare.First(), bare.First());
}

}  // namespace

Status CciDriver::Restore(const sdk::ComputeGrants& grants) {
  grants_ = grants;
  ForgetGoneBalancers(kernel::FindBalancers(files_));
  kernel::RepeatBans(files_, knobs_->records());
  std::set<std::string> living;
  for (const auto& [key, grant] : grants) {
    living.insert(OwnerOf(key));
  }
  // A value that cannot be restored now is retried later; the start does not wait for it.
  if (const Status kept = knobs_->KeepOnly(living); !kept.ok()) {
    log::Warning("cannot restore a value of the machine", {{"error", MessageOf(kept)}});
  }
  TellBalancers();
  return OkStatus();
}

void CciDriver::TellBalancers() {
  if (kernel::QuietOwners(knobs_->records()).empty()) {
    return;
  }
  const std::vector<std::string> running = kernel::FindBalancers(files_);
  ForgetGoneBalancers(running);
  for (const std::string& process : running) {
    if (const Status told = TellBalancer(process); !told.ok()) {
      log::Warning("cannot ban quiet CPUs in irqbalance", {{"error", MessageOf(told)}});
    }
  }
}

void CciDriver::ForgetGoneBalancers(const std::vector<std::string>& running) {
  std::set<std::string> files;
  for (const std::string& process : running) {
    files.insert(kernel::BanFile(process));
  }
  const kernel::JournalRecords records = knobs_->records();
  for (const kernel::JournalRecord& record : records) {
    if (kernel::IsBanFile(record.path) && !files.contains(record.path)) {
      // Its bans ended with the process.
      knobs_->ReleaseFile(record.path).IgnoreError();
    }
  }
}

Status CciDriver::TellBalancer(const std::string& process) {
  for (const auto& [owner, cpus] : kernel::QuietOwners(knobs_->records())) {
    const kernel::JournalRecords& records = knobs_->records();
    const bool is_told =
        std::ranges::any_of(records, [&, &of = owner](const kernel::JournalRecord& record) {
          return record.path == kernel::BanFile(process) && record.claims.contains(of);
        });
    if (!is_told) {
      QRM_RETURN_IF_ERROR(knobs_->Hold(owner, {kernel::BanClaim(process, cpus)}).status());
    }
  }
  return OkStatus();
}

Status CciDriver::Add(const sdk::ComputeInstance& instance) {
  const auto grant = grants_.find(instance.key);
  if (grant == grants_.end()) {
    return OkStatus();
  }
  QRM_RETURN_IF_ERROR(GiveScheduling(KeptByAll(grant->second), instance.cgroup, scheduling_));
  QRM_RETURN_IF_ERROR(HoldKnobs(instance, grant->second));
  TellBalancers();
  return OkStatus();
}

Status CciDriver::HoldKnobs(const sdk::ComputeInstance& instance, const sdk::ComputeGrant& grant) {
  const std::vector<sdk::ComputePart>& parts = grant.parts;
  if (std::ranges::none_of(parts,
                           [](const sdk::ComputePart& part) { return HasKnob(KeptBy(part)); })) {
    return OkStatus();
  }
  const std::string owner = OwnerOf(instance.key);
  const std::vector<kernel::Claim> claims = ClaimsOfInstance(grant, instance.cgroup);
  // An earlier instance had another cgroup.
  QRM_RETURN_IF_ERROR(knobs_->ReleaseAllBut(owner, claims));
  QRM_ASSIGN_OR_RETURN(const std::vector<kernel::Refusal> refusals, knobs_->Hold(owner, claims));
  const CpuSet quiet = QuietCpus(grant);
  if (Status good = CheckQuiet(refusals, quiet, files_); !good.ok()) {
    QRM_RETURN_IF_ERROR(Annotate(knobs_->Release(owner), MessageOf(good)));
    return good;
  }
  return OkStatus();
}

std::vector<kernel::Claim> CciDriver::ClaimsOfInstance(const sdk::ComputeGrant& grant,
                                                       const std::string& cgroup) const {
  const kernel::TunableMachine machine = kernel::ReadTunableMachine(files_, true);
  std::vector<kernel::Claim> claims;
  bool is_unbalanced = false;
  for (const sdk::ComputePart& part : grant.parts) {
    const std::vector<Attribute> kept = KeptBy(part);
    const std::vector<kernel::Claim> more = ClaimsOf(kept, part.cpus, machine);
    claims.insert(claims.end(), more.begin(), more.end());
    is_unbalanced = is_unbalanced || IsUnbalanced(kept);
  }
  if (is_unbalanced) {
    const std::vector<kernel::Claim> more = PartitionClaims(cgroup, grant.Cpus());
    claims.insert(claims.end(), more.begin(), more.end());
  }
  return claims;
}

Status CciDriver::Remove(const ContainerKey& key) {
  QRM_RETURN_IF_ERROR(knobs_->Release(OwnerOf(key)));
  grants_.erase(key);
  TellBalancers();
  return OkStatus();
}

// Only if needed: reading all of the machine's files takes milliseconds.
kernel::TunableMachine CciDriver::KnobsFor(const SpecLines& lines) const {
  const auto any = [&](bool (*is_such)(const std::vector<Attribute>&)) {
    return std::ranges::any_of(lines,
                               [&](const SpecLine& line) { return is_such(line.attributes); });
  };
  if (!any(HasKnob)) {
    return {};
  }
  kernel::TunableMachine knobs = kernel::ReadTunableMachine(files_, true);
  if (any(IsQuiet)) {
    kernel::ProbeInterrupts(files_, knobs.interrupts);
  }
  return knobs;
}

StatusOr<sdk::ComputeGrant> CciDriver::Admit(const sdk::ComputeRequest& request) {
  QRM_ASSIGN_OR_RETURN(sdk::ComputeGrant grant, Decide(request, {}));
  grants_[request.key] = grant;
  return grant;
}

StatusOr<sdk::ComputeGrant> CciDriver::Resize(const sdk::ComputeRequest& request,
                                              const sdk::ComputeGrant& now) {
  std::vector<CpuSet> kept;
  kept.reserve(now.parts.size());
  for (const sdk::ComputePart& part : now.parts) {
    kept.push_back(part.shared ? CpuSet() : part.cpus);
  }
  return Decide(request, std::move(kept));
}

StatusOr<sdk::ComputeGrant> CciDriver::Decide(const sdk::ComputeRequest& request,
                                              std::vector<CpuSet> kept) const {
  const int cpus = static_cast<int>(request.milli_cpus / kMilli);
  const bool has_fraction = request.milli_cpus % kMilli != 0;
  QRM_ASSIGN_OR_RETURN(const ComputeSpec spec, ReadPodSpec(request.spec, policies_, cpus));
  const bool shares = std::ranges::any_of(spec.lines, [](const SpecLine& line) {
    return Has(line.attributes, AttributeKind::kShared);
  });
  if (cpus == 0 || (has_fraction && !shares)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it gives whole CPUs, but the container requests {}m; request whole CPUs, or add "
                  "a shared line to cores",
                  request.milli_cpus);
  }
  const Room room{.available = request.available,
                  .near = request.hint.nodes,
                  .cpus = cpus,
                  .shared = request.shared,
                  .has_fraction = has_fraction,
                  .kept = std::move(kept)};
  const std::string readings = BothReadings(spec.lines, room);
  StatusOr<sdk::ComputeGrant> chosen = Choose(spec.lines, room, layout_, KnobsFor(spec.lines));
  if (!chosen.ok()) {
    return readings.empty()
               ? chosen.status()
               : Errorf(chosen.status().code(), "{}; {}", MessageOf(chosen.status()), readings);
  }
  sdk::ComputeGrant grant = *std::move(chosen);
  if (!readings.empty()) {
    grant.warnings.push_back(readings);
  }
  QRM_ASSIGN_OR_RETURN(const std::vector<Attribute> container,
                       ChooseScheduling(spec.container, scheduling_, grant.unmet));
  grant.envs = Told(grant, container);
  return grant;
}

}  // namespace qrm::cci
