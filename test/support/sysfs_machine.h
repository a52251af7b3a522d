// A copy of the files below /sys and /proc from which a small machine is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "api/id_set.h"

namespace qrm::test {

/// A machine of one NUMA node; all its CPUs are cores of one package.
struct SysfsMachine {
  int cpus = 2;
  uint64_t kibibytes = 1 << 20;       ///< in all
  uint64_t node_kibibytes = 1 << 20;  ///< of the node: less where some was plugged in later
};

inline void WriteSysfsFile(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text << '\n';
}

/// Makes `online` the CPUs that are online, as the kernel lists them.
inline void SetOnline(const std::filesystem::path& root, const CpuSet& online) {
  WriteSysfsFile(root / "sys/devices/system/cpu/online", ToString(online));
}

/// Writes `machine` below `root`; all its CPUs are online.
inline void WriteSysfsMachine(const std::filesystem::path& root, const SysfsMachine& machine) {
  const std::filesystem::path system = root / "sys/devices/system";
  const std::string all = fmt::format("0-{}", machine.cpus - 1);
  const std::string mask = fmt::format("{:x}", (1U << static_cast<unsigned>(machine.cpus)) - 1);
  for (const char* file : {"online", "possible", "present"}) {
    WriteSysfsFile(system / "cpu" / file, all);
  }
  for (int cpu = 0; cpu < machine.cpus; ++cpu) {
    const std::filesystem::path topology = system / fmt::format("cpu/cpu{}/topology", cpu);
    WriteSysfsFile(topology / "core_id", std::to_string(cpu));
    WriteSysfsFile(topology / "physical_package_id", "0");
    WriteSysfsFile(topology / "thread_siblings",
                   fmt::format("{:x}", 1U << static_cast<unsigned>(cpu)));
    WriteSysfsFile(topology / "core_siblings", mask);
  }
  WriteSysfsFile(root / "proc/meminfo", fmt::format("MemTotal: {} kB", machine.kibibytes));
  WriteSysfsFile(system / "node/online", "0");
  WriteSysfsFile(system / "node/node0/cpumap", mask);
  WriteSysfsFile(system / "node/node0/meminfo",
                 fmt::format("Node 0 MemTotal: {} kB", machine.node_kibibytes));
}

}  // namespace qrm::test
