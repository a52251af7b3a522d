// The NUMA nodes of a machine's devices, for pools that are to be near devices.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/cpu/config/config.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// NUMA nodes by device: those that `config` lists, or else those of the machine. The machine has
/// NICs by interface, and PCI devices by address ("0000:3b:00.0") and by vendor and device
/// ("10de:2330"), in lower case. Devices on an unknown node are left out.
std::map<std::string, NumaMask> DevicesOf(const Machine& machine, const CpuPluginConfig& config);

/// Sets the nodes of the machine's devices that pools name. Adds to `repairs` one sentence for each
/// pool that only prefers devices without a node with CPUs. Errors: kInvalidArgument for a pool
/// that requires such devices.
Status FitDevices(const Machine& machine, CpuPluginConfig& config,
                  std::vector<std::string>& repairs);

/// The nodes of the devices that kubelet gave the pod of `request`, if `pool`, a pool or an
/// instance, is to be near them. With an instance per container, only that container's devices
/// count. Empty for other pools.
NumaMask NodesOfDevices(const CpuPluginConfig& config, const ContainerRequest& request,
                        const std::string& pool);

/// The devices that pools name, in the form of the key `devices`; empty when there are none, or
/// `config` lists them already.
std::string NamedDevices(const Machine& machine, const CpuPluginConfig& config);

}  // namespace qrm::cpu
