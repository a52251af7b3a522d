// Reads the kernel's uncore files, and finds the CPUs of each die.
#include "plugins/tuning/tunable_machine.h"

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/base/number.h"

namespace qrm::tuning {
namespace {

using host::HostFiles;
using host::NumberOf;

constexpr char kUncores[] = "sys/devices/system/cpu/intel_uncore_frequency";
constexpr char kOnline[] = "sys/devices/system/cpu/online";

/// Package and die.
using Die = std::pair<int, int>;

Die DieOf(const HostFiles& files, int cpu) {
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
CpuSet CpusOfUncore(const HostFiles& files, const std::string& name,
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

std::vector<Uncore> ReadUncores(const HostFiles& files, const std::map<Die, CpuSet>& dies) {
  std::vector<Uncore> uncores;
  for (const std::string& name : files.List(kUncores)) {
    const std::string directory = fmt::format("{}/{}", kUncores, name);
    CpuSet cpus = CpusOfUncore(files, name, dies);
    if (!cpus.Empty() && files.MayWrite(directory + "/min_freq_khz")) {
      uncores.push_back({.directory = directory,
                         .cpus = std::move(cpus),
                         .least = NumberOf(files, directory + "/initial_min_freq_khz"),
                         .most = NumberOf(files, directory + "/initial_max_freq_khz")});
    }
  }
  return uncores;
}

}  // namespace

TunableMachine ReadTunableMachine(const HostFiles& files, bool with_interrupts) {
  TunableMachine machine{.cpus = CpuSet::Parse(files.Read(kOnline).value_or("")).value_or(CpuSet()),
                         .policies = host::ReadFrequencyPolicies(files)};
  std::map<Die, CpuSet> dies;
  for (const int cpu : machine.cpus) {
    if (files.MayWrite(host::WakeUpFile(cpu))) {
      machine.wake_up.Add(cpu);
    }
    dies[DieOf(files, cpu)].Add(cpu);
  }
  machine.uncores = ReadUncores(files, dies);
  if (with_interrupts) {
    machine.interrupts = host::ReadInterrupts(files);
  }
  return machine;
}

}  // namespace qrm::tuning
