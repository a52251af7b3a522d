// Walks up from a device's directory in sysfs.
#include "manager/kubelet/sysfs_nodes.h"

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace qrm::manager {
namespace {

namespace fs = std::filesystem;

constexpr char kVfio[] = "/dev/vfio/";

/// Whether `name` is a single component of a path, so that it leads nowhere else.
bool IsName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

std::optional<int> NodeIn(const fs::path& directory) {
  std::ifstream file(directory / "numa_node");
  int node = -1;
  return file >> node && node >= 0 ? std::optional(node) : std::nullopt;
}

}  // namespace

SysfsNodes::SysfsNodes(std::string sysfs) : sysfs_(std::move(sysfs)) {}

std::optional<int> SysfsNodes::Above(const std::string& directory) const {
  std::error_code error;
  const fs::path top = fs::canonical(sysfs_, error);
  fs::path device = fs::canonical(fs::path(sysfs_) / directory, error);
  while (!error && device.string().size() > top.string().size()) {
    if (const std::optional<int> node = NodeIn(device); node.has_value()) {
      return node;
    }
    device = device.parent_path();
  }
  return std::nullopt;
}

std::optional<int> SysfsNodes::OfPciDevice(const std::string& address) const {
  return IsName(address) ? Above("bus/pci/devices/" + address) : std::nullopt;
}

std::optional<int> SysfsNodes::OfInterface(const std::string& interface) const {
  return IsName(interface) ? Above("class/net/" + interface + "/device") : std::nullopt;
}

std::optional<int> SysfsNodes::OfDeviceFile(const std::string& path, bool is_block, uint64_t major,
                                            uint64_t minor) const {
  if (path.starts_with(kVfio)) {
    const std::string group = path.substr(sizeof(kVfio) - 1);
    std::error_code error;
    const fs::path devices =
        fs::path(sysfs_) / "kernel/iommu_groups" / (IsName(group) ? group : ".") / "devices";
    for (const auto& device : fs::directory_iterator(devices, error)) {
      if (const auto node = OfPciDevice(device.path().filename()); node.has_value()) {
        return node;
      }
    }
  }
  return Above(fmt::format("dev/{}/{}:{}", is_block ? "block" : "char", major, minor));
}

}  // namespace qrm::manager
