// Reads the kernel's files of frequencies, idle states and uncores.
#include "plugins/kernel/tunable_machine.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "api/base/number.h"
#include "api/base/text.h"

namespace qrm::kernel {
namespace {

constexpr char kCpus[] = "sys/devices/system/cpu";
constexpr char kPolicies[] = "sys/devices/system/cpu/cpufreq";
constexpr char kUncores[] = "sys/devices/system/cpu/intel_uncore_frequency";
constexpr char kCgroups[] = "sys/fs/cgroup";

/// The words of a file; empty if it cannot be read.
std::vector<std::string> WordsOf(const KernelFiles& files, const std::string& path) {
  return WordsIn(files.Read(path).value_or(""));
}

/// The number in a file; 0 if there is none.
int64_t NumberOf(const KernelFiles& files, const std::string& path) {
  return ParseNumber<int64_t>(files.Read(path).value_or("")).value_or(0);
}

FrequencyPolicy ReadPolicy(const KernelFiles& files, const std::string& directory) {
  FrequencyPolicy policy{
      .directory = directory,
      .least = NumberOf(files, directory + "/cpuinfo_min_freq"),
      .most = NumberOf(files, directory + "/cpuinfo_max_freq"),
      .base = NumberOf(files, directory + "/base_frequency"),
      .governors = WordsOf(files, directory + "/scaling_available_governors"),
      .preferences = WordsOf(files, directory + "/energy_performance_available_preferences")};
  for (const std::string& cpu : WordsOf(files, directory + "/affected_cpus")) {
    if (const auto id = ParseNumber<int>(cpu);
        id.has_value() && *id >= 0 && *id < CpuSet::kMaxIds) {
      policy.cpus.Add(*id);
    }
  }
  return policy;
}

std::vector<FrequencyPolicy> ReadFrequencyPolicies(const KernelFiles& files) {
  std::vector<FrequencyPolicy> policies;
  for (const std::string& name : files.List(kPolicies)) {
    FrequencyPolicy policy = ReadPolicy(files, fmt::format("{}/{}", kPolicies, name));
    if (!policy.cpus.Empty() && files.MayWrite(policy.directory + "/scaling_min_freq")) {
      policies.push_back(std::move(policy));
    }
  }
  return policies;
}

/// Package and die.
using Die = std::pair<int, int>;

Die DieOf(const KernelFiles& files, int cpu) {
  const std::string topology = fmt::format("sys/devices/system/cpu/cpu{}/topology", cpu);
  return {static_cast<int>(NumberOf(files, topology + "/physical_package_id")),
          static_cast<int>(NumberOf(files, topology + "/die_id"))};
}

/// The number after `word` in a name such as package_00_die_01.
std::optional<int> NumberBehind(std::string_view name, std::string_view word) {
  const auto at = name.find(word);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = name.substr(at + word.size());
  return ParseNumber<int>(rest.substr(0, rest.find('_')));
}

/// The CPUs of the uncore `name`: of a die, or of a whole package where the kernel's numbers do not
/// mean dies.
CpuSet CpusOfUncore(const KernelFiles& files, const std::string& name,
                    const std::map<Die, CpuSet>& dies) {
  const std::string told = files.Read(fmt::format("{}/{}/package_id", kUncores, name)).value_or("");
  const auto package =
      name.starts_with("uncore") ? ParseNumber<int>(told) : NumberBehind(name, "package_");
  const auto die = NumberBehind(name, "die_");
  CpuSet cpus;
  for (const auto& [of, theirs] : dies) {
    if (of.first == package && (!die.has_value() || of.second == die)) {
      cpus |= theirs;
    }
  }
  return cpus;
}

std::vector<Uncore> ReadUncores(const KernelFiles& files, const std::map<Die, CpuSet>& dies) {
  std::vector<Uncore> uncores;
  for (const std::string& name : files.List(kUncores)) {
    const std::string directory = fmt::format("{}/{}", kUncores, name);
    CpuSet cpus = CpusOfUncore(files, name, dies);
    if (!cpus.Empty() && files.MayWrite(directory + "/min_freq_khz")) {
      uncores.push_back({.directory = directory,
                         .cpus = std::move(cpus),
                         .least = NumberOf(files, directory + "/initial_min_freq_khz"),
                         .most = NumberOf(files, directory + "/initial_max_freq_khz"),
                         .bound = NumberOf(files, directory + "/max_freq_khz")});
    }
  }
  return uncores;
}

/// From Linux 6.7, each cgroup v2 below the root with the controller has the file.
bool FindPartitions(const KernelFiles& files) {
  const std::vector<std::string> cgroups = files.List(kCgroups);
  return std::ranges::any_of(cgroups, [&](const std::string& name) {
    return files.MayWrite(fmt::format("{}/{}/cpuset.cpus.exclusive", kCgroups, name));
  });
}

}  // namespace

TunableMachine ReadTunableMachine(const KernelFiles& files, bool with_interrupts) {
  const std::string online = files.Read(fmt::format("{}/online", kCpus)).value_or("");
  TunableMachine machine{.cpus = CpuSet::Parse(online).value_or(CpuSet()),
                         .policies = ReadFrequencyPolicies(files),
                         .partitions = FindPartitions(files)};
  std::map<Die, CpuSet> dies;
  for (const int cpu : machine.cpus) {
    if (files.MayWrite(WakeUpFile(cpu))) {
      machine.wake_up.Add(cpu);
    }
    const std::string rank = fmt::format("{}/cpu{}/acpi_cppc/highest_perf", kCpus, cpu);
    if (const int64_t performance = NumberOf(files, rank); performance > 0) {
      machine.ranks[cpu] = performance;
    }
    dies[DieOf(files, cpu)].Add(cpu);
  }
  machine.uncores = ReadUncores(files, dies);
  if (with_interrupts) {
    machine.interrupts = ReadInterrupts(files);
  }
  return machine;
}

std::string WakeUpFile(int cpu) {
  return fmt::format("sys/devices/system/cpu/cpu{}/power/pm_qos_resume_latency_us", cpu);
}

std::optional<int64_t> ParseDecimal(std::string_view text, int digits) {
  const auto point = text.find('.');
  std::string whole(text.substr(0, point));
  std::string part(point == std::string_view::npos ? "" : text.substr(point + 1));
  if (whole.empty() || (point != std::string_view::npos && part.empty())) {
    return std::nullopt;
  }
  part.resize(part.find_last_not_of('0') + 1);  // size 0 if there are only zeros
  if (part.size() > static_cast<std::size_t>(digits)) {
    return std::nullopt;
  }
  part.resize(static_cast<std::size_t>(digits), '0');
  const auto number = ParseNumber<int64_t>(whole + part);
  return number.has_value() && *number >= 0 ? number : std::nullopt;
}

std::optional<int64_t> ParseFrequency(std::string_view text) {
  constexpr std::pair<std::string_view, int> kUnits[] = {{"ghz", 6}, {"mhz", 3}, {"khz", 0}};
  const std::string lower = Lower(text);
  const std::string_view all = lower;
  for (const auto& [unit, digits] : kUnits) {
    if (all.ends_with(unit)) {
      const auto khz = ParseDecimal(Trimmed(all.substr(0, all.size() - unit.size())), digits);
      const bool fits = khz.has_value() && *khz > 0 && *khz <= std::numeric_limits<int32_t>::max();
      return fits ? khz : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace qrm::kernel
