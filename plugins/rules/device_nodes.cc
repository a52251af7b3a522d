// Reads and writes the annotation as JSON.
#include "plugins/rules/device_nodes.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/foreign_json.h"

namespace qrm::rules {
namespace {

using nlohmann::json;

NodesByResource ReadContainer(const json& resources) {
  NodesByResource nodes;
  for (const auto& [resource, list] : resources.items()) {
    if (auto mask = NumaMask::Parse(list.is_string() ? list.get<std::string>() : "");
        mask.ok() && !mask->Empty()) {
      nodes.emplace(resource, *std::move(mask));
    }
  }
  return nodes;
}

}  // namespace

std::string ToText(const DeviceNodes& devices) {
  json containers = json::object();
  for (const auto& [container, resources] : devices) {
    json& object = containers[container] = json::object();
    for (const auto& [resource, nodes] : resources) {
      object[resource] = ToString(nodes);
    }
  }
  return containers.dump(-1, ' ', false, json::error_handler_t::replace);
}

DeviceNodes ReadDeviceNodes(const StringMap& annotations) {
  DeviceNodes devices;
  const auto found = annotations.find(kDeviceNodesAnnotation);
  if (found == annotations.end()) {
    return devices;
  }
  const json containers = ParseJson(found->second).value_or(json());
  if (!containers.is_object()) {
    return devices;
  }
  for (const auto& [container, resources] : containers.items()) {
    if (resources.is_object()) {
      devices.emplace(container, ReadContainer(resources));
    }
  }
  return devices;
}

}  // namespace qrm::rules
