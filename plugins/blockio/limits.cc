// Merges the entries of a class per device, and formats them for the kernel.
#include "plugins/blockio/limits.h"

#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"

namespace qrm::blockio {
namespace {

using kernel::CgroupFile;
using kernel::CgroupTable;
using kernel::LineForm;

constexpr char kReadBps[] = "blkio.throttle.read_bps_device";
constexpr char kWriteBps[] = "blkio.throttle.write_bps_device";
constexpr char kReadIops[] = "blkio.throttle.read_iops_device";
constexpr char kWriteIops[] = "blkio.throttle.write_iops_device";
constexpr char kBfqWeightDevice[] = "blkio.bfq.weight_device";
constexpr char kIoMax[] = "io.max";
constexpr char kIoWeight[] = "io.weight";
constexpr char kIoBfqWeight[] = "io.bfq.weight";
constexpr char kDefaultKey[] = "default";
constexpr char kDefaultWeight[] = "100";
constexpr char kUnlimited[] = "rbps=max wbps=max riops=max wiops=max";

/// A class's values by device.
struct ResolvedDevices {
  std::map<DeviceId, std::pair<Device, Parameters>> by_device;
  std::optional<uint64_t> weight;  // of all other devices
  Weighing weighing{};             // if there is such a weight
};

Status Refused(const std::string& path, const std::string& why, const std::string& cure) {
  return Errorf(StatusCode::kFailedPrecondition, "{} {}; {}", path, why, cure);
}

/// The devices of `glob` by path, without partitions whose disk is among them: limits of the disk
/// apply to all its partitions. Errors: kFailedPrecondition for what is not a block device.
StatusOr<std::map<std::string, Device>> Matching(const std::string& glob, const Devices& devices) {
  std::map<std::string, Device> matching;
  for (const std::string& path : devices.Match(glob)) {
    const StatusOr<Device> device = devices.Look(path);
    if (device.ok()) {
      matching[path] = *device;
    } else if (device.status().code() != StatusCode::kNotFound) {  // gone since it matched
      return Errorf(StatusCode::kFailedPrecondition, "{}", MessageOf(device.status()));
    }
  }
  std::set<DeviceId> ids;
  for (const auto& [path, device] : matching) {
    ids.insert(device.id);
  }
  std::erase_if(matching, [&](const auto& entry) {
    return entry.second.is_partition && ids.contains(entry.second.disk);
  });
  return matching;
}

Status AddDevice(const std::string& path, const Device& device, const Parameters& parameters,
                 ResolvedDevices& resolved) {
  if (device.is_partition) {
    return Refused(path, "is a partition, which the kernel does not limit",
                   "write a glob that matches its disk");
  }
  if (parameters.weight.has_value() && !device.has_bfq && !device.has_io_cost) {
    return Refused(path, "has no weights: its scheduler is not bfq, and iocost is not enabled",
                   "set bfq in its queue/scheduler, enable it in io.cost.qos, or remove Weight");
  }
  auto& entry = resolved.by_device[device.id];
  entry.first = device;
  entry.second.Override(parameters);
  return OkStatus();
}

StatusOr<ResolvedDevices> Resolve(const ClassConfig& config, const Devices& devices,
                                  CgroupVersion version) {
  ResolvedDevices resolved;
  for (const Entry& entry : config) {
    if (entry.devices.empty()) {
      resolved.weight = entry.parameters.weight;
    }
    for (const std::string& glob : entry.devices) {
      QRM_ASSIGN_OR_RETURN(const auto matching, Matching(glob, devices));
      for (const auto& [path, device] : matching) {
        QRM_RETURN_IF_ERROR(AddDevice(path, device, entry.parameters, resolved));
      }
    }
  }
  if (resolved.weight.has_value()) {
    resolved.weighing = devices.WeighingOfDisks();
    resolved.weighing.by_io_cost &= version == CgroupVersion::kV2;
    if (!resolved.weighing.by_bfq && !resolved.weighing.by_io_cost) {
      return Refused("no disk",
                     "has weights: none has the scheduler bfq, nor iocost with cgroup v2",
                     "set bfq in a queue/scheduler, enable io.cost.qos, or remove Weight");
    }
  }
  return resolved;
}

void SetIf(CgroupTable& table, const char* file, const std::string& key,
           const std::optional<uint64_t>& number) {
  if (number.has_value()) {
    table[file][key] = std::to_string(*number);
  }
}

CgroupTable TableOfV1(const ResolvedDevices& resolved) {
  CgroupTable table;
  for (const auto& [id, entry] : resolved.by_device) {
    const std::string key = ToString(id);
    const Parameters& parameters = entry.second;
    SetIf(table, kReadBps, key, parameters.read_bps);
    SetIf(table, kWriteBps, key, parameters.write_bps);
    SetIf(table, kReadIops, key, parameters.read_iops);
    SetIf(table, kWriteIops, key, parameters.write_iops);
    SetIf(table, kBfqWeightDevice, key, parameters.weight);
  }
  SetIf(table, kBfqWeightDevice, kDefaultKey, resolved.weight);
  return table;
}

std::string MaxOf(const Parameters& parameters) {
  const auto text = [](const std::optional<uint64_t>& number) {
    return number.has_value() ? std::to_string(*number) : "max";
  };
  return fmt::format("rbps={} wbps={} riops={} wiops={}", text(parameters.read_bps),
                     text(parameters.write_bps), text(parameters.read_iops),
                     text(parameters.write_iops));
}

/// Converts a weight of 10 to 1000 to io.weight's range, 1 to 10000. Source: runc.
uint64_t IoWeight(uint64_t weight) {
  return 1 + (weight - 10) * 9999 / 990;
}

CgroupTable TableOfV2(const ResolvedDevices& resolved) {
  CgroupTable table;
  for (const auto& [id, entry] : resolved.by_device) {
    const auto& [device, parameters] = entry;
    if (const std::string max = MaxOf(parameters); max != kUnlimited) {
      table[kIoMax][ToString(id)] = max;
    }
    if (parameters.weight.has_value()) {
      SetIf(table, device.has_bfq ? kIoBfqWeight : kIoWeight, ToString(id),
            device.has_bfq ? *parameters.weight : IoWeight(*parameters.weight));
    }
  }
  if (resolved.weighing.by_io_cost && resolved.weight.has_value()) {
    SetIf(table, kIoWeight, kDefaultKey, IoWeight(*resolved.weight));
  }
  if (resolved.weighing.by_bfq) {
    SetIf(table, kIoBfqWeight, kDefaultKey, resolved.weight);
  }
  return table;
}

/// The table that the kernel shows: a default weight cannot be distinguished from no weight.
CgroupTable WithoutNeutral(CgroupTable table, CgroupVersion version) {
  for (const CgroupFile& file : FilesOf(version)) {
    const auto lines = table.find(file.name);
    if (lines != table.end()) {
      std::erase_if(lines->second, [&](const auto& line) { return line.second == file.neutral; });
    }
  }
  std::erase_if(table, [](const auto& file) { return file.second.empty(); });
  return table;
}

}  // namespace

const std::vector<CgroupFile>& FilesOf(CgroupVersion version) {
  static const std::vector<CgroupFile> v1 = {
      {kReadBps, LineForm::kKeyed, "0", "0"},
      {kWriteBps, LineForm::kKeyed, "0", "0"},
      {kReadIops, LineForm::kKeyed, "0", "0"},
      {kWriteIops, LineForm::kKeyed, "0", "0"},
      {kBfqWeightDevice, LineForm::kKeyed, kDefaultWeight, kDefaultWeight},
  };
  static const std::vector<CgroupFile> v2 = {
      {kIoMax, LineForm::kKeyed, kUnlimited, kUnlimited},
      {kIoWeight, LineForm::kKeyed, kDefaultWeight, kDefaultWeight},
      {kIoBfqWeight, LineForm::kKeyed, kDefaultWeight, kDefaultWeight},
  };
  return version == CgroupVersion::kV1 ? v1 : v2;
}

StatusOr<CgroupTable> TableOf(const ClassConfig& config, const Devices& devices,
                              CgroupVersion version) {
  QRM_ASSIGN_OR_RETURN(const ResolvedDevices resolved, Resolve(config, devices, version));
  return WithoutNeutral(version == CgroupVersion::kV1 ? TableOfV1(resolved) : TableOfV2(resolved),
                        version);
}

std::string UnmatchedGlobs(const ClassConfig& config, const Devices& devices) {
  std::vector<std::string> globs;
  for (const Entry& entry : config) {
    for (const std::string& glob : entry.devices) {
      if (!devices.Match(glob).empty()) {
        return {};
      }
      globs.push_back(glob);
    }
  }
  return fmt::format("{}", fmt::join(globs, ", "));
}

StringMap UnifiedOf(const CgroupTable& table) {
  StringMap unified;
  for (const auto& [file, lines] : table) {
    if (lines.size() == 1) {
      const auto& [key, value] = *lines.begin();
      unified[file] = key.empty() ? value : fmt::format("{} {}", key, value);
    }
  }
  return unified;
}

}  // namespace qrm::blockio
