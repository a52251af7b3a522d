// Checks attributes against the machine's CPUs and interrupts, and uses the thread attributes of
// the class type cpu-scheduling.
#include "plugins/cci/cpu_knobs.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "plugins/kernel/knob.h"
#include "plugins/kernel/thread_attributes.h"

namespace qrm::cci {
namespace {

using kernel::Claim;
using kernel::ClaimForm;
using kernel::FrequencyPolicy;
using kernel::TunableMachine;

constexpr char kCgroups[] = "sys/fs/cgroup";
constexpr char kExclusive[] = "cpuset.cpus.exclusive";

const FrequencyPolicy* PolicyOf(const TunableMachine& machine, int cpu) {
  const auto policy = std::ranges::find_if(
      machine.policies, [&](const FrequencyPolicy& of) { return of.cpus.Has(cpu); });
  return policy == machine.policies.end() ? nullptr : &*policy;
}

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

template <typename... Args>
Status Missing(const Attribute& attribute, fmt::format_string<Args...> format, Args&&... args) {
  return Errorf(StatusCode::kFailedPrecondition, "{} is not possible: {}", attribute.text,
                fmt::format(format, std::forward<Args>(args)...));
}

/// The energy preference for a priority in thousandths.
std::string PreferenceOf(int64_t priority) {
  constexpr int64_t kMost = 1000;
  constexpr int64_t kHigh = 700;
  constexpr int64_t kMiddle = 300;
  if (priority >= kMost) {
    return "performance";
  }
  return priority >= kHigh     ? "balance_performance"
         : priority >= kMiddle ? "balance_power"
                               : "power";
}

/// OK when `policy` can have `attribute`.
Status CheckPolicy(const Attribute& attribute, const FrequencyPolicy& policy) {
  switch (attribute.kind) {
    case AttributeKind::kGovernor:
      return Has(policy.governors, attribute.word)
                 ? OkStatus()
                 : Missing(attribute, "CPUs {} have the governors {}; name one of them",
                           ToString(policy.cpus), fmt::join(policy.governors, ", "));
    case AttributeKind::kEnergyPreference:
      return Has(policy.preferences, attribute.word)
                 ? OkStatus()
                 : Missing(attribute, "CPUs {} have the energy preferences {}; name one of them",
                           ToString(policy.cpus),
                           policy.preferences.empty()
                               ? "none"
                               : fmt::format("{}", fmt::join(policy.preferences, ", ")));
    case AttributeKind::kPriority:
      return Has(policy.preferences, PreferenceOf(attribute.least))
                 ? OkStatus()
                 : Missing(attribute, "CPUs {} have no energy preference {}; remove it",
                           ToString(policy.cpus), PreferenceOf(attribute.least));
    default:
      break;
  }
  const int64_t least = attribute.least == 0 ? attribute.most : attribute.least;
  const int64_t most = attribute.most == 0 ? attribute.least : attribute.most;
  if (least < policy.least || most > policy.most) {
    return Missing(attribute, "CPUs {} run at {}kHz to {}kHz; write a frequency in this range",
                   ToString(policy.cpus), policy.least, policy.most);
  }
  return OkStatus();
}

Status CheckFrequency(const Attribute& attribute, const CpuSet& cpus, const CpuSet& own,
                      const TunableMachine& machine) {
  for (const int cpu : cpus) {
    const FrequencyPolicy* const policy = PolicyOf(machine, cpu);
    if (policy == nullptr) {
      return Missing(attribute, "CPU {} has no cpufreq that this driver may set; remove it", cpu);
    }
    QRM_RETURN_IF_ERROR(CheckPolicy(attribute, *policy));
    if (!policy->cpus.IsSubsetOf(own)) {
      return Missing(attribute,
                     "CPU {} changes its frequency with CPUs {}, but the container lacks CPUs {}; "
                     "request all of them",
                     cpu, ToString(policy->cpus), ToString(policy->cpus - own));
    }
  }
  return OkStatus();
}

Status CheckQuiet(const Attribute& attribute, const CpuSet& cpus, const TunableMachine& machine) {
  if (machine.interrupts.movable.empty()) {
    return Missing(attribute, "this driver may not move interrupts; run it as privileged root");
  }
  for (const kernel::Balancer& balancer : machine.interrupts.balancers) {
    if (!balancer.takes_bans) {
      return Missing(
          attribute,
          "irqbalance (process {}) moves interrupts back within seconds; stop irqbalance",
          balancer.process);
    }
  }
  for (const kernel::FixedInterrupt& interrupt : machine.interrupts.fixed) {
    if (interrupt.cpus.IsSubsetOf(cpus)) {
      return Missing(
          attribute,
          "the kernel does not allow interrupt {} on CPUs {} to be moved; request other CPUs",
          interrupt.name, ToString(interrupt.cpus));
    }
  }
  return OkStatus();
}

/// The values that one attribute sets in one policy.
std::vector<Claim> OfPolicy(const Attribute& attribute, const FrequencyPolicy& policy) {
  const auto claim = [&](const char* file, ClaimForm form, std::string value) {
    return Claim{.path = fmt::format("{}/{}", policy.directory, file),
                 .form = form,
                 .value = std::move(value)};
  };
  switch (attribute.kind) {
    case AttributeKind::kGovernor:
      return {claim("scaling_governor", ClaimForm::kWord, attribute.word)};
    case AttributeKind::kEnergyPreference:
      return {claim("energy_performance_preference", ClaimForm::kWord, attribute.word)};
    case AttributeKind::kPriority:
      return {
          claim("energy_performance_preference", ClaimForm::kWord, PreferenceOf(attribute.least))};
    default:
      break;
  }
  std::vector<Claim> claims;
  if (attribute.most > 0) {
    claims.push_back(
        claim("scaling_max_freq", ClaimForm::kCeiling, std::to_string(attribute.most)));
  }
  if (attribute.least > 0) {
    claims.push_back(claim("scaling_min_freq", ClaimForm::kFloor, std::to_string(attribute.least)));
  }
  return claims;
}

/// The governor comes before the preference: not every governor permits each preference.
int OrderOf(const Attribute& attribute) {
  return attribute.kind == AttributeKind::kGovernor ? 0 : 1;
}

const kernel::KnobType& Type() {
  static const kernel::KnobType type = *std::ranges::find_if(
      kernel::KnobTypes(),
      [](const kernel::KnobType& one) { return one.name == kernel::kSchedulingType; });
  return type;
}

/// The knob of an attribute of the container's threads; empty for other attributes.
std::string ThreadKnobOf(const Attribute& attribute) {
  return attribute.kind == AttributeKind::kSchedule ? kernel::kPolicy
         : attribute.kind == AttributeKind::kNice   ? kernel::kNice
                                                    : "";
}

Status Check(const Attribute& attribute, const kernel::KnobMachine& machine) {
  const std::string knob = ThreadKnobOf(attribute);
  if (knob.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "{} is not supported by this driver; remove it, or write {}? to run without",
                  attribute.text, attribute.text);
  }
  return Annotate(CheckValues(Type(), {{knob, attribute.word}}, machine),
                  attribute.text + " is not possible");
}

}  // namespace

bool IsKnob(const Attribute& attribute) {
  return attribute.kind >= AttributeKind::kFrequency && attribute.kind <= AttributeKind::kNoBalance;
}

Status CheckKnob(const Attribute& attribute, const CpuSet& cpus, const CpuSet& own,
                 const TunableMachine& machine) {
  switch (attribute.kind) {
    case AttributeKind::kNoIrq:
      return CheckQuiet(attribute, cpus, machine);
    case AttributeKind::kIdleLatency:
      return cpus.IsSubsetOf(machine.wake_up)
                 ? OkStatus()
                 : Missing(attribute,
                           "CPUs {} have no pm_qos_resume_latency_us that this driver may write; "
                           "run it as privileged root, or remove it",
                           ToString(cpus - machine.wake_up));
    case AttributeKind::kNoBalance:
      return machine.partitions
                 ? OkStatus()
                 : Missing(attribute,
                           "this driver cannot make a container's cgroup a partition: that needs "
                           "cgroup v2, Linux 6.7 and privileged root; remove it");
    default:
      return CheckFrequency(attribute, cpus, own, machine);
  }
}

// From the top down: a cgroup's exclusive CPUs must be exclusive in its parent.
std::vector<Claim> PartitionClaims(const std::string& cgroup, const CpuSet& cpus) {
  std::vector<Claim> claims;
  for (std::size_t end = 0; end < cgroup.size();) {
    end = std::min(cgroup.find('/', end + 1), cgroup.size());
    claims.push_back({.path = fmt::format("{}{}/{}", kCgroups, cgroup.substr(0, end), kExclusive),
                      .form = ClaimForm::kCpuUnion,
                      .value = ToString(cpus)});
  }
  claims.push_back({.path = fmt::format("{}{}/cpuset.cpus.partition", kCgroups, cgroup),
                    .form = ClaimForm::kPartition,
                    .value = "isolated"});
  return claims;
}

std::vector<Claim> ClaimsOf(const std::vector<Attribute>& attributes, const CpuSet& cpus,
                            const TunableMachine& machine) {
  std::vector<Attribute> ordered = attributes;
  std::ranges::stable_sort(
      ordered, [](const Attribute& a, const Attribute& b) { return OrderOf(a) < OrderOf(b); });
  std::vector<Claim> claims;
  const auto add = [&](const std::vector<Claim>& more) {
    claims.insert(claims.end(), more.begin(), more.end());
  };
  for (const Attribute& attribute : ordered) {
    if (attribute.kind == AttributeKind::kNoIrq) {
      add(kernel::QuietClaims(cpus, machine.interrupts));
    } else if (attribute.kind == AttributeKind::kIdleLatency) {
      for (const int cpu : cpus) {
        claims.push_back({.path = kernel::WakeUpFile(cpu),
                          .form = ClaimForm::kLatency,
                          .value = attribute.least == 0 ? "n/a" : std::to_string(attribute.least)});
      }
    } else if (IsKnob(attribute) && attribute.kind != AttributeKind::kNoBalance) {
      for (const FrequencyPolicy& policy : machine.policies) {
        if (policy.cpus.Intersects(cpus)) {
          add(OfPolicy(attribute, policy));
        }
      }
    }
  }
  return claims;
}

kernel::KnobMachine FindScheduling(const std::string& cgroup_root) {
  return kernel::FindKnobs(Type().controller, cgroup_root);
}

StatusOr<std::vector<Attribute>> ChooseScheduling(const std::vector<Attribute>& asked,
                                                  const kernel::KnobMachine& machine,
                                                  std::vector<sdk::UnmetWish>& unmet) {
  std::vector<Attribute> kept;
  for (const Attribute& attribute : asked) {
    Status good = Check(attribute, machine);
    if (good.ok()) {
      kept.push_back(attribute);
      kept.back().is_wish = false;
    } else if (attribute.is_wish) {
      unmet.push_back({.token = attribute.text + "?", .reason = MessageOf(good)});
    } else {
      return good;
    }
  }
  return kept;
}

Status GiveScheduling(const std::vector<Attribute>& attributes, const std::string& cgroup,
                      const kernel::KnobMachine& machine) {
  kernel::ThreadValues values;
  for (const Attribute& attribute : attributes) {
    values[ThreadKnobOf(attribute)] = attribute.word;
  }
  return kernel::SetAllThreads(machine.threads_root + cgroup, values);
}

}  // namespace qrm::cci
