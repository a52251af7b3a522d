// Follows the upstream plugin also where a node would decide otherwise: sidecars are not
// subtracted, fractions of CPUs are compared with whole ones, the zone with the smallest number is
// taken.
#include "scheduler/topology/match_rules.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "api/base/number.h"
#include "scheduler/cache/read_objects.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;

constexpr int kMostZones = 64;

bool IsNative(const std::string& resource) {
  return resource.find('/') == std::string::npos ||
         resource.find("kubernetes.io/") != std::string::npos;
}

/// Shared among containers unless the pod is Guaranteed.
bool IsShared(const std::string& resource, const Pod& pod) {
  return pod.qos_class != "Guaranteed" &&
         (resource == "cpu" || resource == "memory" || resource.rfind("hugepages-", 0) == 0);
}

bool IsHostLevel(const std::string& resource) {
  return resource == "ephemeral-storage" || resource == "storage" || !IsNative(resource);
}

bool IsOnNode(const MatchNode& node, const std::string& resource) {
  return resource == "cpu" || resource == "memory" || resource == "pods" ||
         resource == "ephemeral-storage" || node.allocatable.contains(resource);
}

SchedulerAmounts ToUnits(const Amounts& amounts) {
  SchedulerAmounts units;
  for (const auto& [name, amount] : amounts) {
    units[name] = ToSchedulerUnits(name, amount);
  }
  return units;
}

/// The zones that have `amount` of one resource; absent when it constrains nothing.
std::optional<uint64_t> FittingZones(const MatchNode& node, const Pod& pod,
                                     const std::string& resource, int64_t amount) {
  uint64_t fitting = 0;
  bool listed = false;
  for (const auto& [id, available] : node.zones) {
    const auto found = available.find(resource);
    if (found != available.end()) {
      listed = true;
      fitting |= IsShared(resource, pod) || found->second >= amount ? uint64_t{1} << id : 0;
    }
  }
  return !listed && IsHostLevel(resource) ? std::nullopt : std::optional(fitting);
}

/// The zone for `request`; absent when there is none.
std::optional<int> Fit(const MatchNode& node, const Pod& pod, const SchedulerAmounts& request) {
  uint64_t mask = ~uint64_t{0};
  for (const auto& [resource, amount] : request) {
    if (amount == 0) {
      continue;
    }
    if (!IsOnNode(node, resource)) {
      return std::nullopt;
    }
    mask &= FittingZones(node, pod, resource, amount).value_or(~uint64_t{0});
    if (mask == 0) {
      return std::nullopt;
    }
  }
  return std::countr_zero(mask);
}

void Subtract(MatchNode& node, const Pod& pod, int zone, const SchedulerAmounts& request) {
  const auto amounts = node.zones.find(zone);
  if (amounts == node.zones.end()) {
    return;
  }
  for (const auto& [resource, amount] : request) {
    if (const auto found = amounts->second.find(resource);
        found != amounts->second.end() && !IsShared(resource, pod)) {
      found->second -= amount;
    }
  }
}

std::string ByContainer(MatchNode node, const Pod& pod) {
  for (const PodContainer& container : pod.containers) {
    const SchedulerAmounts request = ToUnits(container.requests);
    const std::optional<int> zone = Fit(node, pod, request);
    switch (container.kind) {
      case PodContainer::Kind::kInit:
        if (!zone.has_value()) {
          return "cannot align init container";
        }
        break;
      case PodContainer::Kind::kSidecar:
        if (!zone.has_value()) {
          return "cannot align sidecar container";
        }
        break;
      case PodContainer::Kind::kApp:
        if (!zone.has_value()) {
          return "cannot align container";
        }
        Subtract(node, pod, *zone, request);
        break;
      case PodContainer::Kind::kEphemeral:  // requests nothing
        break;
    }
  }
  return {};
}

std::string ByPod(const MatchNode& node, const Pod& pod) {
  SchedulerAmounts inits;
  SchedulerAmounts whole;
  for (const PodContainer& container : pod.containers) {
    for (const auto& [resource, amount] : ToUnits(container.requests)) {
      if (container.kind == PodContainer::Kind::kApp) {
        whole[resource] += amount;
      } else {
        inits[resource] = std::max(inits[resource], amount);
      }
    }
  }
  for (const auto& [resource, amount] : inits) {
    whole[resource] = std::max(whole[resource], amount);
  }
  for (const auto& [resource, amount] : ToUnits(pod.overhead)) {
    whole[resource] += amount;
  }
  return Fit(node, pod, whole).has_value() ? "" : "cannot align pod";
}

bool AsksForNothingAligned(const Pod& pod) {
  return pod.qos_class == "BestEffort" &&
         std::all_of(pod.containers.begin(), pod.containers.end(), [](const PodContainer& c) {
           return std::all_of(c.requests.begin(), c.requests.end(),
                              [](const auto& request) { return IsNative(request.first); });
         });
}

/// The elements of a list that are mappings.
std::vector<json> Mappings(const json& object, const char* key) {
  std::vector<json> mappings;
  if (object.contains(key) && object.at(key).is_array()) {
    std::copy_if(object.at(key).begin(), object.at(key).end(), std::back_inserter(mappings),
                 [](const json& element) { return element.is_object(); });
  }
  return mappings;
}

/// The number of a zone that counts.
std::optional<int> ZoneId(const json& zone) {
  const std::string name = TextAt(zone, "/name");
  if (TextAt(zone, "/type") != "Node" || name.rfind("node-", 0) != 0) {
    return std::nullopt;
  }
  const std::optional<int> id = ParseNumber<int>(name.substr(5));
  return id.has_value() && *id >= 0 && *id < kMostZones ? id : std::nullopt;
}

void ReadOldPolicy(const json& topology, MatchNode& node) {
  if (!topology.contains("topologyPolicies") || !topology.at("topologyPolicies").is_array() ||
      topology.at("topologyPolicies").empty()) {
    return;
  }
  const json& policy = topology.at("topologyPolicies").front();
  node.single_numa_node =
      policy == "SingleNUMANodeContainerLevel" || policy == "SingleNUMANodePodLevel";
  node.scope = policy == "SingleNUMANodePodLevel" ? TopologyScope::kPod : TopologyScope::kContainer;
}

}  // namespace

std::string MatchRefusal(const MatchNode& node, const Pod& pod) {
  if (!node.single_numa_node || AsksForNothingAligned(pod)) {
    return {};
  }
  return node.scope == TopologyScope::kPod ? ByPod(node, pod) : ByContainer(node, pod);
}

MatchNode ReadMatchNode(const json& topology) {
  MatchNode node;
  ReadOldPolicy(topology, node);
  for (const json& attribute : Mappings(topology, "attributes")) {
    const std::string name = TextAt(attribute, "/name");
    const std::string value = TextAt(attribute, "/value");
    // Numeric is ours: the plugin knows kubelet's words only.
    if (const auto policy = ParseTopologyPolicy(value);
        name == "topologyManagerPolicy" && policy.ok() && *policy != TopologyPolicy::kNumeric) {
      node.single_numa_node = *policy == TopologyPolicy::kSingleNumaNode;
    }
    if (const auto scope = ParseTopologyScope(value);
        name == "topologyManagerScope" && scope.ok()) {
      node.scope = *scope;
    }
  }
  for (const json& zone : Mappings(topology, "zones")) {
    const std::optional<int> id = ZoneId(zone);
    if (!id.has_value()) {
      continue;
    }
    SchedulerAmounts& amounts = node.zones[*id];
    for (const json& resource : Mappings(zone, "resources")) {
      const std::string name = TextAt(resource, "/name");
      if (const std::optional<double> amount = AmountAt(resource, "/available")) {
        amounts[name] = ToSchedulerUnits(name, *amount);
      }
    }
  }
  return node;
}

int64_t ToSchedulerUnits(const std::string& name, double amount) {
  constexpr double kRounding = 1e-6;  // of a double that stands for a decimal fraction
  return std::llround(std::ceil(amount * (name == "cpu" ? 1000 : 1) - kRounding));
}

}  // namespace qrm::scheduler
