// Reads CDI specifications, and finds their device files and interfaces in sysfs.
#include "manager/kubelet/cdi_nodes.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <yaml-cpp/yaml.h>

#include "api/base/foreign_yaml.h"

namespace qrm::manager {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 1000;

YAML::Node YamlPart(const YAML::Node& node, const char* key) {
  return node.IsMap() && node[key].IsDefined() ? node[key] : YAML::Node();
}

std::string YamlText(const YAML::Node& node, const char* key) {
  const YAML::Node part = YamlPart(node, key);
  return part.IsScalar() ? part.Scalar() : std::string();
}

uint64_t YamlNumber(const YAML::Node& node, const char* key) {
  return YamlPart(node, key).as<uint64_t>(0);
}

/// The elements of a list; a value of another kind has none.
std::vector<YAML::Node> YamlList(const YAML::Node& node, const char* key) {
  const YAML::Node part = YamlPart(node, key);
  return part.IsSequence() ? std::vector<YAML::Node>(part.begin(), part.end())
                           : std::vector<YAML::Node>();
}

void AddEdits(const YAML::Node& edits, CdiDevice& device) {
  for (const YAML::Node& node : YamlList(edits, "deviceNodes")) {
    const std::string on_host = YamlText(node, "hostPath");
    const bool has_number = YamlPart(node, "major").IsScalar();
    device.nodes.push_back({.path = on_host.empty() ? YamlText(node, "path") : on_host,
                            .has_number = has_number,
                            .is_block = YamlText(node, "type") == "b",
                            .major = has_number ? YamlNumber(node, "major") : 0,
                            .minor = has_number ? YamlNumber(node, "minor") : 0});
  }
  for (const YAML::Node& device_of_net : YamlList(edits, "netDevices")) {
    device.interfaces.push_back(YamlText(device_of_net, "hostInterfaceName"));
  }
}

/// A specification may leave the number to the file's.
std::optional<int> NodeOf(const SysfsNodes& sysfs, CdiDevice::Node node) {
  struct stat file{};
  if (!node.has_number) {
    if (stat(node.path.c_str(), &file) != 0) {
      return std::nullopt;
    }
    node.is_block = S_ISBLK(file.st_mode);
    node.major = major(file.st_rdev);
    node.minor = minor(file.st_rdev);
  }
  return sysfs.OfDeviceFile(node.path, node.is_block, node.major, node.minor);
}

std::vector<fs::path> SpecificationsIn(const std::string& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string kind = entry.path().extension();
    if ((kind == ".json" || kind == ".yaml") && files.size() < kMostFiles &&
        entry.is_regular_file(error) && entry.file_size(error) <= config::kForeignYaml.bytes) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

CdiDevice ReadCdiDevice(const std::string& text, const std::string& id) {
  CdiDevice found;
  const auto equals = id.find('=');
  // Most files are of other devices, and reading them as YAML takes a hundred times as long.
  if (equals == std::string::npos || text.find(id.substr(0, equals)) == std::string::npos ||
      text.find(id.substr(equals + 1)) == std::string::npos) {
    return found;
  }
  const StatusOr<YAML::Node> spec = config::ParseYaml(text, "specification", config::kForeignYaml);
  if (!spec.ok() || YamlText(*spec, "kind") != id.substr(0, equals)) {
    return found;
  }
  for (const YAML::Node& device : YamlList(*spec, "devices")) {
    if (YamlText(device, "name") == id.substr(equals + 1)) {
      AddEdits(YamlPart(device, "containerEdits"), found);
      break;
    }
  }
  return found;
}

CdiNodes::CdiNodes(std::vector<std::string> directories, SysfsNodes sysfs)
    : directories_(std::move(directories)), sysfs_(std::move(sysfs)) {}

NearNodes CdiNodes::NodesOf(const std::string& id) const {
  for (auto directory = directories_.rbegin(); directory != directories_.rend(); ++directory) {
    for (const fs::path& path : SpecificationsIn(*directory)) {
      std::ifstream file(path);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      const CdiDevice device = ReadCdiDevice(text, id);
      for (const CdiDevice::Node& node : device.nodes) {
        if (const auto near = NodeOf(sysfs_, node); near.has_value()) {
          return {*near};
        }
      }
      for (const std::string& interface : device.interfaces) {
        if (const auto near = sysfs_.OfInterface(interface); near.has_value()) {
          return {*near};
        }
      }
    }
  }
  return {};
}

void CdiNodes::Find(const ClaimDevice& device, Found found) {
  NearNodes nodes;
  for (const std::string& id : device.cdi_ids) {
    if (nodes.empty()) {
      nodes = NodesOf(id);
    }
  }
  found(nodes);
}

}  // namespace qrm::manager
