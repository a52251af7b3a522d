// Matches globs with the names of devices.
#include "plugins/cpu/devices.h"

#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "api/base/glob.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/placement/device_nodes.h"

namespace qrm::cpu {
namespace {

using Devices = std::map<std::string, NumaMask>;

void AddTo(Devices& devices, const std::string& name, std::optional<int> node) {
  if (!name.empty() && node.has_value()) {
    devices[name].Add(*node);
  }
}

Devices Matching(const Devices& devices, const std::vector<std::string>& globs) {
  Devices matching;
  for (const auto& [name, nodes] : devices) {
    if (MatchesAnyGlob(globs, name)) {
      matching.emplace(name, nodes);
    }
  }
  return matching;
}

NumaMask NodesWithCpus(const Machine& machine, const Devices& devices) {
  NumaMask nodes;
  for (const auto& [name, of_device] : devices) {
    for (const int id : of_device) {
      const NumaNode* const node = machine.FindNode(id);
      if (node != nullptr && !node->cpus.Empty()) {
        nodes.Add(id);
      }
    }
  }
  return nodes;
}

std::string Remedy(const Devices& devices) {
  constexpr std::size_t kNamed = 8;
  std::vector<std::string> names;
  for (const auto& [name, nodes] : devices) {
    if (names.size() < kNamed) {
      names.push_back(name);
    }
  }
  return names.empty()
             ? "list devices and their NUMA nodes under devices"
             : fmt::format("name one of {}{}, or list it under devices", fmt::join(names, ", "),
                           devices.size() > kNamed ? ", ..." : "");
}

}  // namespace

Devices DevicesOf(const Machine& machine, const CpuPluginConfig& config) {
  if (config.devices.has_value()) {
    return *config.devices;
  }
  Devices devices;
  for (const Nic& nic : machine.parts().nics) {
    AddTo(devices, nic.name, nic.node);
    AddTo(devices, nic.pci_address, nic.node);
  }
  for (const PciDevice& device : machine.parts().pci_devices) {
    AddTo(devices, device.address, device.node);
    AddTo(devices, fmt::format("{:04x}:{:04x}", device.vendor, device.device), device.node);
  }
  return devices;
}

Status FitDevices(const Machine& machine, CpuPluginConfig& config,
                  std::vector<std::string>& repairs) {
  const Devices devices = DevicesOf(machine, config);
  for (auto& [name, pool] : config.pools) {
    PlaceRule& place = pool.place;
    if (place.near.empty() || place.NearResources()) {
      continue;
    }
    place.near_nodes = NodesWithCpus(machine, Matching(devices, place.near));
    if (!place.near_nodes.Empty()) {
      continue;
    }
    const std::string cause = fmt::format(
        "pool {} is to be near {}, but no such device is on a known NUMA node with CPUs", name,
        fmt::join(place.near, ", "));
    if (place.near_required) {
      return Errorf(StatusCode::kInvalidArgument, "{}; {}", cause, Remedy(devices));
    }
    repairs.push_back(fmt::format("{}, so the pool can be anywhere; {}", cause, Remedy(devices)));
  }
  return OkStatus();
}

NumaMask NodesOfDevices(const CpuPluginConfig& config, const ContainerRequest& request,
                        const std::string& pool) {
  const PoolConfig* const found = FindPool(config, pool);
  NumaMask nodes;
  if (found == nullptr || !found->instances.has_value() || !found->place.NearResources()) {
    return nodes;
  }
  const bool own = found->instances->by == InstanceRule::By::kContainer;
  for (const auto& [container, devices] : placement::ReadDeviceNodes(request.annotations)) {
    if (own && container != request.key.container) {
      continue;
    }
    for (const auto& [resource, of_device] : devices) {
      nodes |= MatchesAnyGlob(found->place.near, resource) ? of_device : NumaMask();
    }
  }
  return nodes;
}

std::string NamedDevices(const Machine& machine, const CpuPluginConfig& config) {
  std::vector<std::string> globs;
  for (const auto& [name, pool] : config.pools) {
    if (!pool.place.NearResources()) {
      globs.insert(globs.end(), pool.place.near.begin(), pool.place.near.end());
    }
  }
  if (config.devices.has_value() || globs.empty()) {
    return "";
  }
  std::vector<std::string> listed;
  for (const auto& [name, nodes] : Matching(DevicesOf(machine, config), globs)) {
    listed.push_back(fmt::format("\"{}\": \"{}\"", name, ToString(nodes)));
  }
  return fmt::format("{{{}}}", fmt::join(listed, ", "));
}

}  // namespace qrm::cpu
