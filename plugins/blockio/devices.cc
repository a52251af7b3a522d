// Reads device nodes and sysfs.
#include "plugins/blockio/devices.h"

#include <cerrno>
#include <sstream>
#include <system_error>

#include <glob.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "plugins/kernel/kernel_files.h"

namespace qrm::blockio {
namespace {

bool Exists(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0;
}

/// Whether a line of io.cost.qos, "8:0 enable=1 ctrl=...", enables it.
bool CostIsEnabled(const std::string& text, const DeviceId& id) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(ToString(id) + " ")) {
      return line.find(" enable=1") != std::string::npos;
    }
  }
  return false;
}

}  // namespace

std::string ToString(const DeviceId& id) {
  return fmt::format("{}:{}", id.major, id.minor);
}

std::vector<std::string> SystemDevices::Match(const std::string& pattern) const {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  return paths;
}

StatusOr<Device> SystemDevices::Look(const std::string& path) const {
  struct stat node{};
  if (::stat(path.c_str(), &node) != 0) {
    return Errorf(StatusCode::kNotFound, "cannot read device {}: {}", path,
                  std::generic_category().message(errno));
  }
  if (!S_ISBLK(node.st_mode)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "{} is not a block device; write a glob that matches only block devices", path);
  }
  Device device{.id = {gnu_dev_major(node.st_rdev), gnu_dev_minor(node.st_rdev)}};
  const std::string entry = fmt::format("{}/dev/block/{}", sys_root_, ToString(device.id));
  device.is_partition = Exists(entry + "/partition");
  if (device.is_partition) {
    char colon = 0;  // the entry is a link into the directory of the disk
    std::istringstream(kernel::ReadLine(entry + "/../dev")) >> device.disk.major >> colon >>
        device.disk.minor;
  }
  device.has_bfq = kernel::ReadLine(entry + "/queue/scheduler").find("[bfq]") != std::string::npos;
  device.has_io_cost = CostIsEnabled(kernel::ReadLine(cost_file_), device.id);
  return device;
}

Weighing SystemDevices::WeighingOfDisks() const {
  Weighing weighing{.by_io_cost =
                        kernel::ReadLine(cost_file_).find(" enable=1") != std::string::npos};
  for (const std::string& scheduler : Match(sys_root_ + "/block/*/queue/scheduler")) {
    weighing.by_bfq =
        weighing.by_bfq || kernel::ReadLine(scheduler).find("[bfq]") != std::string::npos;
  }
  return weighing;
}

}  // namespace qrm::blockio
