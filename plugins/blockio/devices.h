// The machine's block devices, with the facts that classes need.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "api/base/status.h"

namespace qrm::blockio {

/// The kernel's number of a device.
struct DeviceId {
  uint32_t major = 0;
  uint32_t minor = 0;

  auto operator<=>(const DeviceId&) const = default;
};

/// "8:16".
std::string ToString(const DeviceId& id);

struct Device {
  DeviceId id;
  bool is_partition = false;
  DeviceId disk;         ///< of a partition
  bool has_bfq = false;  ///< its scheduler is bfq, which uses blkio.bfq.weight and io.bfq.weight
  bool has_io_cost = false;  ///< iocost is enabled for it, which uses io.weight

  bool operator==(const Device&) const = default;
};

/// What disks of the machine weigh requests by.
struct Weighing {
  bool by_bfq = false;
  bool by_io_cost = false;
};

/// Finds devices. Threads: one at a time.
class Devices {
 public:
  virtual ~Devices() = default;

  /// The existing paths that match the glob `pattern`.
  [[nodiscard]] virtual std::vector<std::string> Match(const std::string& pattern) const = 0;
  /// Errors: kNotFound when it is gone; kInvalidArgument if it is not a block device.
  [[nodiscard]] virtual StatusOr<Device> Look(const std::string& path) const = 0;
  /// Of all disks together.
  [[nodiscard]] virtual Weighing WeighingOfDisks() const = 0;
};

/// The devices of this machine. Source: Linux, Documentation/admin-guide/cgroup-v2.rst; glob(3).
class SystemDevices final : public Devices {
 public:
  /// `sys_root` is where sysfs is mounted; `cost_file` the io.cost.qos of the root cgroup of v2.
  SystemDevices(std::string sys_root, std::string cost_file)
      : sys_root_(std::move(sys_root)), cost_file_(std::move(cost_file)) {}

  [[nodiscard]] std::vector<std::string> Match(const std::string& pattern) const override;
  [[nodiscard]] StatusOr<Device> Look(const std::string& path) const override;
  [[nodiscard]] Weighing WeighingOfDisks() const override;

 private:
  const std::string sys_root_;
  const std::string cost_file_;
};

}  // namespace qrm::blockio
