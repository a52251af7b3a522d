// On which NUMA nodes a machine's devices are, for pools that are to be near to them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/cpu/config/config.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// NUMA nodes by device: those that `config` lists, or else the machine's NICs by interface, and
/// its PCI devices by address ("0000:3b:00.0") and by vendor and device ("10de:2330"), in lower
/// case. Devices whose node is unknown are not there.
std::map<std::string, NumaMask> DevicesOf(const Machine& machine, const CpuPluginConfig& config);

/// Sets the nodes of the devices of the machine that pools name. Adds to `repairs` one sentence for
/// each pool that only prefers to be near to devices which are not there. Errors: kInvalidArgument
/// for one that requires it, or whose devices have nodes without CPUs only.
Status FitDevices(const Machine& machine, CpuPluginConfig& config,
                  std::vector<std::string>& repairs);

/// Where kubelet gave the pod of `request` devices that `pool`, one or an instance, is to be near
/// to: those of the container alone where each container has an instance. Empty for other pools.
NumaMask NodesOfDevices(const CpuPluginConfig& config, const ContainerRequest& request,
                        const std::string& pool);

/// Those of DevicesOf that pools name, as the key `devices` lists them; empty when there are none,
/// or `config` lists them already.
std::string NamedDevices(const Machine& machine, const CpuPluginConfig& config);

}  // namespace qrm::cpu
