// The NUMA nodes of devices by the specifications of the Container Device Interface.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "manager/kubelet/claim_devices.h"
#include "manager/kubelet/sysfs_nodes.h"

namespace qrm::manager {

/// What a specification gives a container for one of its devices.
struct CdiDevice {
  struct Node {
    std::string path;  ///< on the host
    bool has_number = false;
    bool is_block = false;
    uint64_t major = 0;
    uint64_t minor = 0;
  };
  std::vector<Node> nodes;
  std::vector<std::string> interfaces;  ///< network interfaces of the host
};

/// The device `id`, such as "gpu.example.com/gpu=0", in `text`, a specification in JSON or YAML;
/// without nodes and interfaces if the specification does not have it, or cannot be read.
/// Source: Container Device Interface, SPEC.md 1.0.
CdiDevice ReadCdiDevice(const std::string& text, const std::string& id);

/// Reads the specifications below `directories` for each device: drivers write them for each
/// claim. Files over 256 KiB and more than 1,000 of a directory are not read.
class CdiNodes final : public NearNodesSource {
 public:
  CdiNodes(std::vector<std::string> directories, SysfsNodes sysfs);

  void Find(const ClaimDevice& device, Found found) override;

 private:
  NearNodes NodesOf(const std::string& id) const;

  const std::vector<std::string> directories_;
  const SysfsNodes sysfs_;
};

}  // namespace qrm::manager
