// The NUMA nodes of devices by the kernel's files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace qrm::manager {

/// The NUMA node of a device: of the nearest directory above its own in sysfs that names a node.
/// Absent if there is no such device, or the firmware reports no node.
/// Source: Linux, Documentation/ABI: /sys/bus/pci/devices/*/numa_node, /sys/dev.
///
/// Threads: any. Cost: some small files.
class SysfsNodes {
 public:
  /// `sysfs` is the directory, such as "/sys".
  explicit SysfsNodes(std::string sysfs);

  /// `address` is such as "0000:3b:00.0".
  std::optional<int> OfPciDevice(const std::string& address) const;
  /// `interface` is the name of a network interface of the host.
  std::optional<int> OfInterface(const std::string& interface) const;
  /// The block or character device with this number; of a VFIO group at `path`, its devices.
  std::optional<int> OfDeviceFile(const std::string& path, bool is_block, uint64_t major,
                                  uint64_t minor) const;

 private:
  std::optional<int> Above(const std::string& directory) const;

  std::string sysfs_;
};

}  // namespace qrm::manager
