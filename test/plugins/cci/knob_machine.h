// The files of a machine of eight CPUs that supports only some attributes.
#pragma once

#include <string>

#include <fmt/format.h>

#include "test/plugins/kernel/nasty_files.h"

namespace qrm::test {

/// CPUs 0-1 share a frequency policy, 2 to 5 have one each, 6 and 7 none; 2 and 3 have energy
/// preferences; 7 has no idle latency; the kernel manages interrupt 9, on CPU 5.
struct KnobMachine {
  KnobMachine() {
    AddPolicy(0, "0 1");
    for (const int cpu : {2, 3, 4, 5}) {
      AddPolicy(cpu, std::to_string(cpu));
    }
    for (const int cpu : {2, 3}) {
      AddPreferences(cpu);
    }
    for (int cpu = 0; cpu < 7; ++cpu) {
      files.values[Latency(cpu)] = "0";
    }
    files.values["proc/irq/default_smp_affinity"] = "ff";
    for (const int irq : {5, 6, 9}) {
      files.values[Irq(irq)] = "0-7";
      files.values[fmt::format("proc/irq/{}/effective_affinity_list", irq)] = "5";
    }
    files.read_only.insert(Irq(9));
  }

  static std::string Latency(int cpu) {
    return fmt::format("sys/devices/system/cpu/cpu{}/power/pm_qos_resume_latency_us", cpu);
  }
  static std::string Irq(int irq) { return fmt::format("proc/irq/{}/smp_affinity_list", irq); }

  NastyFiles files;

  void AddPreferences(int number) {
    const std::string policy = fmt::format("sys/devices/system/cpu/cpufreq/policy{}/", number);
    files.values[policy + "energy_performance_preference"] = "balance_performance";
    files.values[policy + "energy_performance_available_preferences"] =
        "performance balance_performance balance_power power";
  }
  void AddPolicy(int number, const std::string& cpus) {
    const std::string policy = fmt::format("sys/devices/system/cpu/cpufreq/policy{}/", number);
    files.values[policy + "affected_cpus"] = cpus;
    files.values[policy + "cpuinfo_min_freq"] = "800000";
    files.values[policy + "cpuinfo_max_freq"] = "3000000";
    files.values[policy + "scaling_min_freq"] = "800000";
    files.values[policy + "scaling_max_freq"] = "3000000";
    files.values[policy + "scaling_governor"] = "powersave";
    files.values[policy + "scaling_available_governors"] = "performance powersave";
  }
};

}  // namespace qrm::test
