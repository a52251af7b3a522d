// Finds the NICs and keeps account of their users.
#include "plugins/nic/state.h"

#include <utility>

#include "plugins/nic/policy.h"

namespace qrm::nic {
namespace {

std::optional<int> NodeOf(const Machine& machine, const std::string& interface) {
  for (const Nic& nic : machine.parts().nics) {
    if (nic.name == interface) {
      return nic.node;
    }
  }
  return std::nullopt;
}

InterfaceAddresses AddressesOf(const AddressesByInterface& addresses,
                               const std::string& interface) {
  const auto found = addresses.find(interface);
  return found == addresses.end() ? InterfaceAddresses() : found->second;
}

/// What `declared` leaves out is the machine's, unless the NIC is in another namespace.
NicInfo Complete(const NicConfig& declared, const Machine& machine,
                 const AddressesByInterface& addresses) {
  NicInfo nic = {.id = {.netns = declared.netns, .interface = declared.interface},
                 .node = declared.node,
                 .ipv4 = declared.ipv4,
                 .ipv6 = declared.ipv6,
                 .egress_mbps = declared.egress_mbps,
                 .ingress_mbps = declared.ingress_mbps};
  if (!declared.netns.empty()) {
    return nic;
  }
  if (!nic.node) {
    nic.node = NodeOf(machine, declared.interface);
  }
  if (nic.ipv4.empty() && nic.ipv6.empty()) {
    const InterfaceAddresses own = AddressesOf(addresses, declared.interface);
    nic.ipv4 = own.ipv4;
    nic.ipv6 = own.ipv6;
  }
  return nic;
}

std::vector<NicInfo> NicsOf(const Machine& machine, const AddressesByInterface& addresses) {
  std::vector<NicInfo> nics;
  for (const Nic& nic : machine.parts().nics) {
    const InterfaceAddresses own = AddressesOf(addresses, nic.name);
    if (!own.ipv4.empty() || !own.ipv6.empty()) {
      nics.push_back(
          {.id = {.interface = nic.name}, .node = nic.node, .ipv4 = own.ipv4, .ipv6 = own.ipv6});
    }
  }
  return nics;
}

}  // namespace

Load LoadOf(const NicState& state, const NicId& nic) {
  Load load;
  for (const auto& [key, use] : state) {
    if (use.nic == nic) {
      ++load.containers;
      load.mbps += use.mbps;
    }
  }
  return load;
}

StatusOr<std::vector<NicInfo>> FindNics(const NicPluginConfig& config, const Machine& machine,
                                        const AddressesByInterface& addresses) {
  if (config.nics.empty()) {
    return NicsOf(machine, addresses);
  }
  std::vector<NicInfo> nics;
  for (const NicConfig& declared : config.nics) {
    if (declared.node && machine.FindNode(*declared.node) == nullptr) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot use NIC {} on NUMA node {}: the machine has nodes {}; correct its "
                    "numa-node",
                    declared.interface, *declared.node, ToString(machine.node_mask()));
    }
    nics.push_back(Complete(declared, machine, addresses));
  }
  return nics;
}

NicState Rebuild(const NicPluginConfig& config, const sdk::Grants& grants) {
  NicState state;
  for (const auto& [key, grant] : grants) {
    const auto netns = grant.allocation.annotations.find(kNetnsAnnotation);
    Use& use = state[key];
    use.nic.interface = grant.allocation.value;
    use.nic.netns = netns == grant.allocation.annotations.end() ? "" : netns->second;
    use.mbps = config.request_is_bandwidth ? grant.request.quantity() : 0;
  }
  return state;
}

}  // namespace qrm::nic
