// What a plugin reports about one container by NUMA node, as values without gRPC.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/resource.h"

namespace qrm {

/// What a container holds of one resource, now and when it was admitted.
struct PlacedResource {
  bool is_node_resource = false;
  bool is_scalar_resource = false;
  double amount = 0;
  double admitted_amount = 0;
  std::vector<PlacedQuantity> by_place;
  std::vector<PlacedQuantity> admitted_by_place;

  bool operator==(const PlacedResource&) const = default;
};

/// By resource name.
using PlacedByResource = std::map<std::string, PlacedResource>;

/// What one container holds; nothing of one that the plugin does not know.
struct ContainerPlacement {
  std::string pod_namespace;
  std::string pod_name;
  PlacedByResource resources;

  bool operator==(const ContainerPlacement&) const = default;
};

}  // namespace qrm
