// Reads classes key by key.
#include "plugins/blockio/config.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "api/base/number.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::blockio {
namespace {

using config::Section;

constexpr uint64_t kLeastWeight = 10;
constexpr uint64_t kMostWeight = 1000;
/// The kernel keeps iops in 32 bits, and the largest number means no limit.
constexpr uint64_t kMostIops = std::numeric_limits<uint32_t>::max() - 1;
constexpr uint64_t kMostBps = uint64_t{1} << 53;

struct Unit {
  std::string_view name;
  double factor;
};
/// Source: Kubernetes, "resource quantities".
constexpr Unit kUnits[] = {
    {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0},
    {"k", 1e3},     {"M", 1e6},        {"G", 1e9},           {"T", 1e12},
    {"", 1.0}};

/// A quantity, rounded up; nothing if `text` is not a quantity.
std::optional<double> ParseQuantity(std::string_view text) {
  for (const Unit& unit : kUnits) {
    if (text.ends_with(unit.name)) {
      const auto number = ParseNumber<double>(text.substr(0, text.size() - unit.name.size()));
      return number.has_value() ? std::optional(std::ceil(*number * unit.factor)) : std::nullopt;
    }
  }
  return std::nullopt;
}

struct Range {
  uint64_t least = 0;
  uint64_t most = 0;
};

StatusOr<std::optional<uint64_t>> ReadNumber(const Section& entry, const char* key, Range range) {
  QRM_ASSIGN_OR_RETURN(const std::string text, entry.Text(key, ""));
  if (text.empty()) {
    return std::optional<uint64_t>();
  }
  const std::optional<double> number = ParseQuantity(text);
  if (!number.has_value() || !(*number >= static_cast<double>(range.least)) ||
      *number > static_cast<double>(range.most)) {
    return entry.Error(key, fmt::format("is '{}'", text),
                       fmt::format("write a quantity from {} to {}, such as 50M or 512Ki",
                                   range.least, range.most));
  }
  return std::optional(static_cast<uint64_t>(*number));
}

StatusOr<Entry> ReadEntry(const Section& section) {
  QRM_RETURN_IF_ERROR(section.AllowKeys({"Devices", "ThrottleReadBps", "ThrottleWriteBps",
                                         "ThrottleReadIOPS", "ThrottleWriteIOPS", "Weight"}));
  Entry entry;
  QRM_ASSIGN_OR_RETURN(entry.devices, section.Words("Devices"));
  for (const std::string& device : entry.devices) {
    if (!device.starts_with("/")) {
      return section.Error("Devices", fmt::format("has '{}'", device),
                           "write globs of device nodes, such as /dev/sd[a-z]");
    }
  }
  Parameters& parameters = entry.parameters;
  QRM_ASSIGN_OR_RETURN(parameters.read_bps, ReadNumber(section, "ThrottleReadBps", {1, kMostBps}));
  QRM_ASSIGN_OR_RETURN(parameters.write_bps,
                       ReadNumber(section, "ThrottleWriteBps", {1, kMostBps}));
  QRM_ASSIGN_OR_RETURN(parameters.read_iops,
                       ReadNumber(section, "ThrottleReadIOPS", {1, kMostIops}));
  QRM_ASSIGN_OR_RETURN(parameters.write_iops,
                       ReadNumber(section, "ThrottleWriteIOPS", {1, kMostIops}));
  QRM_ASSIGN_OR_RETURN(parameters.weight,
                       ReadNumber(section, "Weight", {kLeastWeight, kMostWeight}));
  const Parameters only_weight{.weight = parameters.weight};
  if (entry.devices.empty() && parameters != only_weight) {
    return section.Error("Devices", "is missing, but rates need devices",
                         "list the devices; only Weight applies without Devices");
  }
  return entry;
}

}  // namespace

void Parameters::Override(const Parameters& later) {
  read_bps = later.read_bps.has_value() ? later.read_bps : read_bps;
  write_bps = later.write_bps.has_value() ? later.write_bps : write_bps;
  read_iops = later.read_iops.has_value() ? later.read_iops : read_iops;
  write_iops = later.write_iops.has_value() ? later.write_iops : write_iops;
  weight = later.weight.has_value() ? later.weight : weight;
}

StatusOr<std::map<std::string, ClassConfig>> ParseConfig(const Section& file) {
  QRM_RETURN_IF_ERROR(file.AllowKeys({"Classes"}));
  QRM_ASSIGN_OR_RETURN(const Section section, file.Child("Classes"));
  std::map<std::string, ClassConfig> classes;
  for (const std::string& name : section.Keys()) {
    if (!sdk::IsClassName(name)) {
      return section.Error(name, "is not a class name", sdk::kClassNameForm);
    }
    QRM_ASSIGN_OR_RETURN(const std::vector<Section> entries, section.Items(name));
    ClassConfig& config = classes[name];
    for (const Section& entry : entries) {
      QRM_ASSIGN_OR_RETURN(Entry read, ReadEntry(entry));
      config.push_back(std::move(read));
    }
  }
  return classes;
}

}  // namespace qrm::blockio
