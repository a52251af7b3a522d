// Reads resource.k8s.io/v1 objects without assuming that any value has the expected type.
#include "manager/kubelet/slice_nodes.h"

#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/foreign_json.h"
#include "api/id_set.h"
#include "cluster/requests.h"

namespace qrm::manager {
namespace {

using nlohmann::json;

constexpr char kPciAttribute[] = "resource.kubernetes.io/pciBusID";

/// Attributes of a driver's own domain may be written without it.
const json& AttributeOf(const json& attributes, const std::string& name,
                        const std::string& driver) {
  const json& exact = PartOf(attributes, name.c_str());
  return exact.is_null() ? PartOf(attributes, (driver + "/" + name).c_str()) : exact;
}

bool IsNode(const json& value) {
  return value.is_number_integer() && value >= 0 && value < NumaMask::kMaxIds;
}

NearNodes NodesIn(const json& attribute) {
  NearNodes nodes;
  const json& one = PartOf(attribute, "int");
  if (IsNode(one)) {
    nodes.push_back(one.get<int>());
  }
  const json& list = PartOf(attribute, "ints");
  if (list.is_array()) {
    for (const json& node : list) {
      if (IsNode(node)) {
        nodes.push_back(node.get<int>());
      }
    }
  }
  return nodes;
}

std::string NameOf(const json& object) {
  return TextIn(PartOf(object, "metadata"), "name");
}

}  // namespace

SliceNodes::SliceNodes(std::vector<std::string> attributes, SysfsNodes sysfs)
    : attributes_(std::move(attributes)), sysfs_(std::move(sysfs)) {}

SliceNodes::~SliceNodes() = default;

NearNodes SliceNodes::NodesOf(const std::string& driver, const json& attributes) const {
  NearNodes nodes = NodesIn(PartOf(attributes, kNumaNodeAttribute));
  for (const std::string& name : attributes_) {
    if (nodes.empty()) {
      nodes = NodesIn(AttributeOf(attributes, name, driver));
    }
  }
  if (nodes.empty()) {
    const auto node = sysfs_.OfPciDevice(TextIn(PartOf(attributes, kPciAttribute), "string"));
    nodes = node.has_value() ? NearNodes{*node} : NearNodes();
  }
  return nodes;
}

SliceNodes::Slice SliceNodes::Read(const json& object) const {
  const json& spec = PartOf(object, "spec");
  const json& pool = PartOf(spec, "pool");
  const json& generation = PartOf(pool, "generation");
  Slice slice{.driver = TextIn(spec, "driver"),
              .pool = TextIn(pool, "name"),
              .generation = generation.is_number_integer() ? generation.get<int64_t>() : 0,
              .nodes = {}};
  const json& devices = PartOf(spec, "devices");
  if (devices.is_array()) {
    for (const json& device : devices) {
      slice.nodes[TextIn(device, "name")] = NodesOf(slice.driver, PartOf(device, "attributes"));
    }
  }
  return slice;
}

// A pool is what its slices of the highest generation say.
void SliceNodes::Find(const ClaimDevice& device, Found found) {
  std::optional<int64_t> generation;
  NearNodes nodes;
  for (const auto& [name, slice] : slices_) {
    if (slice.driver != device.driver || slice.pool != device.pool ||
        slice.generation < generation.value_or(slice.generation)) {
      continue;
    }
    nodes = slice.generation > generation.value_or(slice.generation) ? NearNodes() : nodes;
    generation = slice.generation;
    if (const auto known = slice.nodes.find(device.device); known != slice.nodes.end()) {
      nodes = known->second;
    }
  }
  found(nodes);
}

void SliceNodes::OnListBegin() {
  listed_.clear();
}

void SliceNodes::OnItem(const json& object) {
  listed_[NameOf(object)] = Read(object);
}

void SliceNodes::OnListEnd(const std::string& /*version*/) {
  slices_ = std::exchange(listed_, {});
}

void SliceNodes::OnSet(const json& object) {
  slices_[NameOf(object)] = Read(object);
}

void SliceNodes::OnDelete(const json& last_state) {
  slices_.erase(NameOf(last_state));
}

ClaimStatusNodes::ClaimStatusNodes(cluster::ApiClient& client, SysfsNodes sysfs)
    : client_(client), sysfs_(std::move(sysfs)) {}

void ClaimStatusNodes::Find(const ClaimDevice& device, Found found) {
  if (device.claim.empty()) {
    found({});
    return;
  }
  const std::string path = fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}",
                                       cluster::PercentEncoded(device.claim_namespace),
                                       cluster::PercentEncoded(device.claim));
  client_.Call(
      {.path = path}, [this, device, found = std::move(found)](const StatusOr<std::string>& body) {
        const json claim = body.ok() ? ParseJson(*body).value_or(json()) : json();
        NearNodes nodes;
        const json& devices = PartOf(PartOf(claim, "status"), "devices");
        if (devices.is_array()) {
          for (const json& listed : devices) {
            const bool is_it = TextIn(listed, "driver") == device.driver &&
                               TextIn(listed, "pool") == device.pool &&
                               TextIn(listed, "device") == device.device;
            const auto node =
                is_it ? sysfs_.OfInterface(TextIn(PartOf(listed, "networkData"), "interfaceName"))
                      : std::nullopt;
            nodes = node.has_value() ? NearNodes{*node} : nodes;
          }
        }
        found(nodes);
      });
}

}  // namespace qrm::manager
