// Writes grants as the pod entries of a plugin's state.
#include "plugins/rules/pod_entries_json.h"

#include <string>

#include <nlohmann/json.hpp>

namespace qrm::rules {
namespace {

using nlohmann::ordered_json;

ordered_json HintsJson(const ResourceAllocation& allocation) {
  ordered_json hints = ordered_json::array();
  for (const TopologyHint& hint : allocation.hints.value_or(std::vector<TopologyHint>())) {
    ordered_json nodes = ordered_json::array();
    for (const int node : hint.nodes) {
      nodes.push_back(node);
    }
    hints.push_back({{"nodes", std::move(nodes)}, {"preferred", hint.preferred}});
  }
  return hints;
}

ordered_json EntryJson(const sdk::Grant& grant) {
  const ContainerRequest& request = grant.request;
  const ResourceAllocation& allocation = grant.allocation;
  ordered_json entry = {
      {"pod_namespace", request.pod_namespace},
      {"pod_name", request.pod_name},
      {"container_type", std::string(ToString(request.type))},
      {"container_index", request.index},
      {"pod_role", request.pod_role},
      {"request_quantity", request.quantity()},
      {"oci_property_name", allocation.oci_property},
      {"is_scalar_resource", allocation.is_scalar_resource},
      {"allocated_quantity", allocation.quantity},
      {"allocation_result", allocation.value},
      {"resource_hints", HintsJson(allocation)},
  };
  if (!allocation.envs.empty()) {
    entry["envs"] = allocation.envs;
  }
  if (!allocation.annotations.empty()) {
    entry["annotations"] = allocation.annotations;
  }
  return entry;
}

}  // namespace

ordered_json PodEntriesJson(const sdk::Grants& grants) {
  ordered_json pods = ordered_json::object();
  for (const auto& [key, grant] : grants) {
    pods[key.pod_uid][key.container] = EntryJson(grant);
  }
  return pods;
}

}  // namespace qrm::rules
