// Resolves profiles for settings that CPUs share.
#include "plugins/kernel/resolve.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace qrm::kernel {
namespace {

using Meaning = Frequency::Meaning;

/// The profiles of CPUs that share a setting.
struct Sharers {
  ProfileNames names;
  std::vector<const TuningProfile*> profiles;
  bool is_mixed = false;    ///< some of the CPUs have no profile
  bool is_foreign = false;  ///< a compute driver tunes one of the CPUs
};

Sharers SharersOf(const CpuSet& cpus, const TuningPlan& plan) {
  Sharers sharers{.is_foreign = cpus.Intersects(plan.foreign)};
  CpuSet without = cpus;
  for (const auto& [name, theirs] : plan.cpus) {
    const auto found = plan.profiles.find(name);
    if (found != plan.profiles.end() && theirs.Intersects(cpus)) {
      sharers.names.insert(name);
      sharers.profiles.push_back(&found->second);
      without -= theirs;
    }
  }
  sharers.is_mixed = !without.Empty();
  return sharers;
}

/// Whether the profile sets anything that the CPUs of a policy share.
bool SetsPolicy(const TuningProfile* of) {
  return of->frequency != FrequencyRange() || !of->governor.empty() || !of->preference.empty();
}

/// Frequencies of the hardware. Units: kHz.
struct Bounds {
  int64_t least = 0;
  int64_t base = 0;  ///< 0: unknown
  int64_t most = 0;
};

/// Absent if the frequency is not set, or not available.
std::optional<int64_t> ValueOf(const Frequency& frequency, const Bounds& bounds) {
  switch (frequency.meaning) {
    case Meaning::kUntouched:
      return std::nullopt;
    case Meaning::kLeast:
      return bounds.least;
    case Meaning::kBase:
      return bounds.base == 0 ? std::nullopt : std::optional(bounds.base);
    case Meaning::kMost:
      return bounds.most;
    case Meaning::kNumber:
      return std::clamp(frequency.khz, bounds.least, std::max(bounds.least, bounds.most));
  }
  return std::nullopt;
}

/// The highest minimum of `ranges`, and the highest maximum if it slows down none of the sharing
/// CPUs.
struct Span {
  std::optional<int64_t> least;
  std::optional<int64_t> most;
};
Span SpanOf(const Sharers& sharers, FrequencyRange TuningProfile::* range, const Bounds& bounds) {
  Span span;
  bool all_bound = !sharers.is_mixed;
  for (const TuningProfile* of : sharers.profiles) {
    const auto least = ValueOf((of->*range).least, bounds);
    const auto most = ValueOf((of->*range).most, bounds);
    span.least = std::max(span.least, least);  // absent is less than any value
    span.most = std::max(span.most, most);
    all_bound = all_bound && most.has_value();
  }
  if (!all_bound) {
    span.most.reset();
  } else if (span.most.has_value() && span.least.has_value()) {
    span.most = std::max(*span.most, *span.least);
  }
  return span;
}

/// The rank of `word` in `order`, the fastest first; unknown words come last.
std::size_t RankOf(const std::string& word, const std::vector<std::string>& order) {
  return static_cast<std::size_t>(std::ranges::find(order, word) - order.begin());
}

const std::vector<std::string>& Governors() {
  static const std::vector<std::string> order = {
      "performance", "", "schedutil", "ondemand", "conservative", "powersave"};
  return order;
}

const std::vector<std::string>& Preferences() {
  static const std::vector<std::string> order = {"performance", "balance_performance", "",
                                                 "default",     "balance_power",       "power"};
  return order;
}

/// The fastest word that a profile requests; empty if CPUs without a request are faster without it.
std::string MostPerforming(const Sharers& sharers, std::string TuningProfile::* word,
                           const std::vector<std::string>& order) {
  std::optional<std::string> best;
  if (sharers.is_mixed) {
    best = "";
  }
  for (const TuningProfile* of : sharers.profiles) {
    if (!best.has_value() || RankOf(of->*word, order) < RankOf(*best, order)) {
      best = of->*word;
    }
  }
  return best.value_or("");
}

/// CPUs that must not handle interrupts, and the profiles that request it.
struct QuietCpus {
  ProfileNames names;
  CpuSet cpus;
};

QuietCpus QuietCpusOf(const TuningPlan& plan, const CpuSet& online) {
  QuietCpus quiet;
  CpuSet sink;
  for (const auto& [name, cpus] : plan.cpus) {
    const auto found = plan.profiles.find(name);
    const IrqRule rule = found == plan.profiles.end() ? IrqRule::kAny : found->second.irq;
    if (rule != IrqRule::kAny && cpus.Intersects(online)) {
      quiet.names.insert(name);
      (rule == IrqRule::kNone ? quiet.cpus : sink) |= cpus & online;
    }
  }
  if (!sink.Empty()) {
    quiet.cpus |= online - sink;
  }
  return quiet;
}

/// Collects claims and problems.
class Resolver {
 public:
  Resolver(const TuningPlan& plan, const TunableMachine& machine)
      : plan_(plan), machine_(machine) {}

  Resolved Run() && {
    for (const FrequencyPolicy& policy : machine_.policies) {
      AddPolicy(policy);
    }
    for (const auto& [name, cpus] : plan_.cpus) {
      if (const auto found = plan_.profiles.find(name); found != plan_.profiles.end()) {
        AddWakeUp(name, found->second, cpus & machine_.cpus);
        CheckPolicies(name, found->second, cpus & machine_.cpus);
      }
    }
    for (const Uncore& uncore : machine_.uncores) {
      AddUncore(uncore);
    }
    AddInterrupts();
    return std::move(result_);
  }

 private:
  void Add(const ProfileNames& profiles, const std::string& path, ClaimForm form,
           std::string value) {
    // A value that the kernel rejects does not prevent the others.
    result_.files.push_back(
        {.claim = {.path = path, .form = form, .value = std::move(value), .is_optional = true},
         .profiles = profiles});
  }

  template <typename... Args>
  void Miss(const ProfileNames& profiles, fmt::format_string<Args...> format, Args&&... args) {
    result_.problems.push_back(
        {.profiles = profiles, .text = fmt::format(format, std::forward<Args>(args)...)});
  }

  /// `files`: the file of the minimum, and the file of the maximum. A minimum without a maximum
  /// stays within `bound`, which an administrator may have set; 0: none.
  void AddRange(const Sharers& sharers, FrequencyRange TuningProfile::* range, const Bounds& bounds,
                const std::pair<std::string, std::string>& files, int64_t bound = 0) {
    Span span = SpanOf(sharers, range, bounds);
    if (bound > 0 && !span.most.has_value() && span.least.has_value()) {
      span.least = std::min(*span.least, bound);
    }
    if (span.most.has_value()) {
      Add(sharers.names, files.second, ClaimForm::kCeiling, std::to_string(*span.most));
    }
    if (span.least.has_value()) {
      Add(sharers.names, files.first, ClaimForm::kFloor, std::to_string(*span.least));
    }
  }

  void AddPolicy(const FrequencyPolicy& policy) {
    const Sharers sharers = SharersOf(policy.cpus, plan_);
    if (sharers.profiles.empty() || sharers.is_foreign) {
      return;
    }
    NoteSharing(sharers, policy);
    // The governor comes before the preference: not every governor permits each preference.
    AddWord(sharers, policy, &TuningProfile::governor, policy.governors);
    AddWord(sharers, policy, &TuningProfile::preference, policy.preferences);
    AddRange(sharers, &TuningProfile::frequency, {policy.least, policy.base, policy.most},
             {policy.directory + "/scaling_min_freq", policy.directory + "/scaling_max_freq"});
  }

  void AddWord(const Sharers& sharers, const FrequencyPolicy& policy,
               std::string TuningProfile::* word, const std::vector<std::string>& known) {
    const bool governs = word == &TuningProfile::governor;
    const std::string best = MostPerforming(sharers, word, governs ? Governors() : Preferences());
    if (best.empty()) {
      return;
    }
    if (std::ranges::find(known, best) == known.end()) {
      Miss(sharers.names, "class {} requests {} {}, but CPUs {} have {}",
           fmt::join(sharers.names, ", "), governs ? "governor" : "epp", best,
           ToString(policy.cpus),
           known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
      return;
    }
    Add(sharers.names,
        policy.directory + (governs ? "/scaling_governor" : "/energy_performance_preference"),
        ClaimForm::kWord, best);
  }

  void NoteSharing(const Sharers& sharers, const FrequencyPolicy& policy) {
    if (sharers.names.size() + (sharers.is_mixed ? 1 : 0) > 1 &&
        std::ranges::any_of(sharers.profiles, SetsPolicy)) {
      Miss(sharers.names,
           "CPUs {} change their frequency together, but have the classes {}{}: the fastest "
           "request applies",
           ToString(policy.cpus), fmt::join(sharers.names, ", "),
           sharers.is_mixed ? " and no class" : "");
    }
  }

  /// Reports CPUs whose frequency cannot be set, and an unknown base frequency.
  void CheckPolicies(const std::string& name, const TuningProfile& of, const CpuSet& cpus) {
    const auto [least, most] = of.frequency;
    const bool wants_base = least.meaning == Meaning::kBase || most.meaning == Meaning::kBase;
    if (!SetsPolicy(&of)) {
      return;
    }
    CpuSet missing = cpus;
    CpuSet baseless;
    for (const FrequencyPolicy& policy : machine_.policies) {
      missing -= policy.cpus;
      baseless |= policy.base == 0 ? policy.cpus & cpus : CpuSet();
    }
    if (!missing.Empty()) {
      Miss({name},
           "class {} sets frequencies, but CPUs {} have no cpufreq that this process may write: "
           "run it as privileged root, or remove freq, governor and epp",
           name, ToString(missing));
    }
    if (wants_base && !baseless.Empty()) {
      Miss({name},
           "class {} sets the base frequency, but the kernel reports none for CPUs {}: write a "
           "number",
           name, ToString(baseless));
    }
  }

  void AddWakeUp(const std::string& name, const TuningProfile& of, const CpuSet& cpus) {
    if (!of.wake_up_us.has_value()) {
      return;
    }
    for (const int cpu : cpus& machine_.wake_up) {
      Add({name}, WakeUpFile(cpu), ClaimForm::kLatency,
          *of.wake_up_us == 0 ? "n/a" : std::to_string(*of.wake_up_us));
    }
    if (const CpuSet missing = cpus - machine_.wake_up; !missing.Empty()) {
      Miss({name},
           "class {} sets idle-latency-us, but CPUs {} have no pm_qos_resume_latency_us that this "
           "process may write: run it as privileged root, or remove it",
           name, ToString(missing));
    }
  }

  void AddUncore(const Uncore& uncore) {
    const Sharers sharers = SharersOf(uncore.cpus, plan_);
    if (!sharers.is_foreign) {
      AddRange(sharers, &TuningProfile::uncore, {uncore.least, 0, uncore.most},
               {uncore.directory + "/min_freq_khz", uncore.directory + "/max_freq_khz"},
               uncore.bound);
    }
  }

  void AddInterrupts() {
    const auto [names, cpus] = QuietCpusOf(plan_, machine_.cpus);
    if (cpus.Empty() || !CanBeQuiet(names, cpus)) {
      return;
    }
    for (const FixedInterrupt& fixed : machine_.interrupts.fixed) {
      if (fixed.cpus.IsSubsetOf(cpus)) {
        Miss(names,
             "class {} keeps interrupts off CPUs {}, but the kernel does not allow {} to be moved",
             fmt::join(names, ", "), ToString(fixed.cpus), fixed.name);
      }
    }
    for (const Claim& claim : QuietClaims(cpus, machine_.interrupts)) {
      Add(names, claim.path, claim.form, claim.value);
    }
  }

  /// Whether interrupts can be kept off `cpus`; else reports the reason.
  bool CanBeQuiet(const ProfileNames& names, const CpuSet& cpus) {
    const std::string profiles = fmt::format("{}", fmt::join(names, ", "));
    if (!plan_.foreign.Empty()) {
      Miss(names,
           "class {} moves interrupts, but a compute driver does so while it has containers here: "
           "remove irq, or request no-irq from the driver",
           profiles);
    } else if (machine_.cpus.IsSubsetOf(cpus)) {
      Miss(names,
           "class {} would leave no CPU to handle interrupts: keep one of {} without irq: none",
           profiles, ToString(machine_.cpus));
    } else if (machine_.interrupts.movable.empty()) {
      Miss(names,
           "class {} moves interrupts, but this process may not move any: run it as privileged "
           "root, or remove irq",
           profiles);
    } else if (const auto balancer = std::ranges::find_if_not(
                   machine_.interrupts.balancers, [](const Balancer& of) { return of.takes_bans; });
               balancer != machine_.interrupts.balancers.end()) {
      Miss(names,
           "class {} moves interrupts, but irqbalance (process {}) moves them back within seconds: "
           "stop irqbalance",
           profiles, balancer->process);
    } else {
      return true;
    }
    return false;
  }

  const TuningPlan& plan_;
  const TunableMachine& machine_;
  Resolved result_;
};

}  // namespace

Resolved Resolve(const TuningPlan& plan, const TunableMachine& machine) {
  return Resolver(plan, machine).Run();
}

bool WantsQuiet(const TuningPlan& plan) {
  return std::ranges::any_of(plan.profiles,
                             [](const auto& entry) { return entry.second.irq != IrqRule::kAny; });
}

}  // namespace qrm::kernel
