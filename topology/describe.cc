// Writes every part of a Machine as text and as JSON.
#include "topology/describe.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace qrm {
namespace {

using Json = nlohmann::ordered_json;

std::string Size(uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value == static_cast<double>(static_cast<uint64_t>(value));
  return fmt::format(fmt::runtime(whole ? "{:.0f} {}" : "{:.1f} {}"), value, kUnits[unit]);
}

std::string Counted(int count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

int CoresIn(const Machine& machine, const CpuSet& cpus) {
  std::set<int> cores;
  for (const int id : cpus) {
    cores.insert(machine.FindCpu(id)->core);
  }
  return static_cast<int>(cores.size());
}

CpuSet CpusOfKindIn(const Machine& machine, const CpuSet& cpus, int kind) {
  CpuSet found;
  for (const int id : cpus) {
    if (machine.FindCpu(id)->core_kind == kind) {
      found.Add(id);
    }
  }
  return found;
}

std::vector<int> PackageIds(const Machine& machine) {
  std::set<int> ids;
  for (const CpuGroup& package : machine.packages()) {
    ids.insert(package.id);
  }
  for (const NumaNode& node : machine.nodes()) {
    ids.insert(node.package);
  }
  return {ids.begin(), ids.end()};
}

std::string NodeLine(const Machine& machine, const NumaNode& node) {
  std::string line = fmt::format("  node {}: ", node.id);
  line += node.memory_bytes == 0 ? "no memory" : Size(node.memory_bytes);
  if (node.memory_kind != MemoryKind::kDram) {
    line += fmt::format(" of {}", WordOf(node.memory_kind));
  }
  if (node.cpus.Empty()) {
    line += fmt::format(", no CPUs, near nodes {}", ToString(node.homes));
  } else {
    line += fmt::format(", CPUs {} ({} on {})", ToString(node.cpus), node.cpus.Count(),
                        Counted(CoresIn(machine, node.cpus), "core"));
  }
  for (const auto& [size, count] : node.hugepages) {
    if (count > 0) {
      line += fmt::format(", {} hugepages of {}", count, Size(size));
    }
  }
  return line + "\n";
}

std::string CachesAndKinds(const Machine& machine, const NumaNode& node) {
  std::string text;
  for (const CpuGroup& l3 : machine.l3s()) {
    if (const CpuSet near = l3.cpus & node.cpus; !near.Empty()) {
      text += fmt::format("    L3 {}: CPUs {}\n", l3.id, ToString(near));
    }
  }
  for (int kind = machine.highest_core_kind(); kind >= 0 && machine.highest_core_kind() > 0;
       --kind) {
    if (const CpuSet cpus = CpusOfKindIn(machine, node.cpus, kind); !cpus.Empty()) {
      const std::string_view role =
          kind == machine.highest_core_kind() ? "performance" : "efficiency";
      text += fmt::format("    {} cores (kind {}): CPUs {}\n", role, kind, ToString(cpus));
    }
  }
  return text;
}

/// The devices of `node`; those without a known node when it is absent.
std::string DeviceLines(const Machine& machine, std::optional<int> node) {
  std::string text;
  std::set<std::string> named;
  for (const Nic& nic : machine.parts().nics) {
    named.insert(nic.pci_address);
    if (nic.node == node) {
      text += fmt::format("    NIC {}{}\n", nic.name,
                          nic.pci_address.empty() ? "" : " at " + nic.pci_address);
    }
  }
  for (const PciDevice& device : machine.parts().pci_devices) {
    if (device.node == node && named.count(device.address) == 0) {
      text += fmt::format("    PCI {} [{:04x}:{:04x}] class {:04x}\n", device.address,
                          device.vendor, device.device, device.device_class);
    }
  }
  return text;
}

std::string DistanceTable(const Machine& machine) {
  if (machine.parts().distances.empty()) {
    return "";
  }
  std::string text = "distances\n      ";
  for (const NumaNode& to : machine.nodes()) {
    text += fmt::format("{:>5}", to.id);
  }
  text += '\n';
  for (const NumaNode& from : machine.nodes()) {
    text += fmt::format("{:>6}", from.id);
    for (const NumaNode& to : machine.nodes()) {
      text += fmt::format("{:>5}", machine.Distance(from.id, to.id));
    }
    text += '\n';
  }
  return text;
}

Json NodeOrNull(std::optional<int> node) {
  return node.has_value() ? Json(*node) : Json(nullptr);
}

Json CpusJson(const Machine& machine) {
  Json cpus = Json::array();
  for (const Cpu& cpu : machine.cpus()) {
    cpus.push_back({{"id", cpu.id},
                    {"core", cpu.core},
                    {"l3", cpu.has_l3 ? Json(cpu.l3) : Json(nullptr)},
                    {"node", cpu.node},
                    {"package", cpu.package},
                    {"core_kind", cpu.core_kind}});
  }
  return cpus;
}

Json NodesJson(const Machine& machine) {
  Json nodes = Json::array();
  for (const NumaNode& node : machine.nodes()) {
    Json hugepages = Json::array();
    for (const auto& [size, count] : node.hugepages) {
      hugepages.push_back({{"size_bytes", size}, {"count", count}});
    }
    nodes.push_back({{"id", node.id},
                     {"package", node.package},
                     {"cpus", ToString(node.cpus)},
                     {"memory_bytes", node.memory_bytes},
                     {"memory_kind", WordOf(node.memory_kind)},
                     {"homes", ToString(node.homes)},
                     {"hugepages", hugepages}});
  }
  return nodes;
}

Json NicsJson(const Machine& machine) {
  Json nics = Json::array();
  for (const Nic& nic : machine.parts().nics) {
    nics.push_back(
        {{"name", nic.name},
         {"pci_address", nic.pci_address.empty() ? Json(nullptr) : Json(nic.pci_address)},
         {"node", NodeOrNull(nic.node)}});
  }
  return nics;
}

Json PciDevicesJson(const Machine& machine) {
  Json devices = Json::array();
  for (const PciDevice& device : machine.parts().pci_devices) {
    devices.push_back({{"address", device.address},
                       {"class", device.device_class},
                       {"vendor", device.vendor},
                       {"device", device.device},
                       {"node", NodeOrNull(device.node)}});
  }
  return devices;
}

Json GroupsJson(const std::vector<CpuGroup>& groups) {
  Json list = Json::array();
  for (const CpuGroup& group : groups) {
    list.push_back({{"id", group.id}, {"cpus", ToString(group.cpus)}});
  }
  return list;
}

}  // namespace

std::string DescribeMachine(const Machine& machine) {
  std::string text =
      fmt::format("{}, {}, {}, {}, {}\n", Counted(machine.package_count(), "package"),
                  Counted(static_cast<int>(machine.nodes().size()), "NUMA node"),
                  Counted(machine.core_count(), "core"), Counted(machine.cpu_set().Count(), "CPU"),
                  Counted(machine.l3_count(), "L3 cache"));
  for (const int package : PackageIds(machine)) {
    text += fmt::format("package {}\n", package);
    for (const NumaNode& node : machine.nodes()) {
      if (node.package == package) {
        text +=
            NodeLine(machine, node) + CachesAndKinds(machine, node) + DeviceLines(machine, node.id);
      }
    }
  }
  if (const std::string devices = DeviceLines(machine, std::nullopt); !devices.empty()) {
    text += "not on one known node\n" + devices;
  }
  if (!machine.parts().offline.Empty()) {
    text += fmt::format("offline CPUs {}\n", ToString(machine.parts().offline));
  }
  if (!machine.parts().disallowed.Empty()) {
    text += fmt::format("CPUs outside this process's cpuset {}\n",
                        ToString(machine.parts().disallowed));
  }
  text += DistanceTable(machine);
  for (const std::string& warning : machine.parts().warnings) {
    text += fmt::format("warning: {}\n", warning);
  }
  return text;
}

Json MachineToJson(const Machine& machine) {
  const MachineParts& parts = machine.parts();
  return {{"counts",
           {{"packages", machine.package_count()},
            {"numa_nodes", machine.nodes().size()},
            {"cores", machine.core_count()},
            {"cpus", machine.cpu_set().Count()},
            {"l3_caches", machine.l3_count()}}},
          {"cpu_set", ToString(machine.cpu_set())},
          {"offline", ToString(parts.offline)},
          {"disallowed", ToString(parts.disallowed)},
          {"nodes", NodesJson(machine)},
          {"distances", parts.distances.empty() ? Json(nullptr) : Json(parts.distances)},
          {"packages", GroupsJson(machine.packages())},
          {"l3_caches", GroupsJson(machine.l3s())},
          {"cpus", CpusJson(machine)},
          {"nics", NicsJson(machine)},
          {"pci_devices", PciDevicesJson(machine)},
          {"warnings", parts.warnings}};
}

}  // namespace qrm
