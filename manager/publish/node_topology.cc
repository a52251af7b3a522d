// Counts by resource and NUMA node what records hold.
#include "manager/publish/node_topology.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "checkpoint/holdings.h"
#include "manager/publish/pods_fingerprint.h"

namespace qrm::manager {
namespace {

using checkpoint::ContainerRecord;
using checkpoint::PodRecord;
using nlohmann::json;

constexpr int kMostNodes = 64;
constexpr char kCpu[] = "cpu";
constexpr char kHugepages[] = "hugepages-";

struct Held {
  CpuSet cpus;
  std::map<std::string, std::map<int, double>> amounts;  // by resource and NUMA node
  std::vector<PodName> pods;                             // that hold something of their own
};

bool RunsOn(const ContainerRecord& record) {
  return record.type == ContainerType::kMain || record.type == ContainerType::kSidecar;
}

/// Shared CPUs are nobody's: their amounts by node are only where a container runs.
void AddPod(const PodRecord& pod, Held& held) {
  std::map<std::string, checkpoint::PodMemory> amounts;
  bool counts = false;
  for (const auto& [name, record] : pod.containers) {
    for (const auto& [resource, allocation] : record->allocations) {
      const bool owns_cpus = checkpoint::IsExclusiveCpuset(allocation);
      if (owns_cpus) {
        held.cpus |= CpuSet::Parse(allocation->value).value_or(CpuSet{});
      } else if (allocation->oci_property != kCpusetCpus) {
        amounts[resource].Add(record->type, allocation->amount_by_node);
      }
      counts |= RunsOn(*record) && (owns_cpus || !allocation->amount_by_node.empty());
    }
  }
  for (const auto& [resource, amount] : amounts) {
    amount.ForEachNode([&, &resource = resource](uint64_t node, uint64_t at_once) {
      held.amounts[resource][static_cast<int>(node)] += static_cast<double>(at_once);
    });
  }
  if (counts) {
    held.pods.push_back({.pod_namespace = pod.meta.pod_namespace, .name = pod.meta.name});
  }
}

double AmountOn(const std::map<int, double>& amounts, int node) {
  const auto found = amounts.find(node);
  return found == amounts.end() ? 0 : found->second;
}

double AmountOf(const Held& held, const std::string& resource, int node) {
  const auto found = held.amounts.find(resource);
  return found == held.amounts.end() ? 0 : AmountOn(found->second, node);
}

/// CPUs of `node` that `resource` may give and that are not there, or are one container's.
int CpusTaken(const TopologyView& view, const AllocatableResource& resource, const Held& held,
              const NumaNode& node) {
  const CpuSet taken = (held.cpus | view.machine.OfflineNow()) & node.cpus;
  return (resource.allocatable_cpus.Empty() ? taken : taken & resource.allocatable_cpus).Count();
}

/// "hugepages-2Mi"
std::string HugepagesName(uint64_t bytes) {
  constexpr uint64_t kStep = 1024;
  const char* const units[] = {"", "Ki", "Mi", "Gi", "Ti"};
  std::size_t unit = 0;
  while (bytes >= kStep && bytes % kStep == 0 && unit + 1 < std::size(units)) {
    bytes /= kStep;
    ++unit;
  }
  return fmt::format("{}{}{}", kHugepages, bytes, units[unit]);
}

json ResourceEntry(const std::string& name, double capacity, double allocatable, double held) {
  return {{"name", name},
          {"capacity", AmountText(capacity)},
          {"allocatable", AmountText(allocatable)},
          {"available", AmountText(std::max(0.0, allocatable - held))}};
}

json ResourcesOn(const TopologyView& view, const Held& held, const NumaNode& node) {
  json resources = json::array();
  for (const auto& [name, resource] : view.allocatable) {
    const double capacity = AmountOn(resource.capacity_by_node, node.id);
    if (capacity <= 0 || name.starts_with(kHugepages)) {
      continue;
    }
    const double taken =
        AmountOf(held, name, node.id) + (name == kCpu ? CpusTaken(view, resource, held, node) : 0);
    resources.push_back(
        ResourceEntry(name, capacity, AmountOn(resource.allocatable_by_node, node.id), taken));
  }
  for (const auto& [page_bytes, pages] : node.hugepages) {
    const std::string name = HugepagesName(page_bytes);
    const auto bytes = static_cast<double>(page_bytes * pages);
    if (pages > 0) {
      resources.push_back(ResourceEntry(name, bytes, bytes, AmountOf(held, name, node.id)));
    }
  }
  return resources;
}

std::string ZoneName(int node) {
  return fmt::format("node-{}", node);
}

json ZoneOf(const TopologyView& view, const Held& held, const NumaNode& node) {
  json costs = json::array();
  for (const NumaNode& other : view.machine.nodes()) {
    if (other.id < kMostNodes) {
      costs.push_back(
          {{"name", ZoneName(other.id)}, {"value", view.machine.Distance(node.id, other.id)}});
    }
  }
  return {{"name", ZoneName(node.id)},
          {"type", "Node"},
          {"costs", std::move(costs)},
          {"resources", ResourcesOn(view, held, node)}};
}

json Attribute(const char* name, std::string value) {
  return {{"name", name}, {"value", std::move(value)}};
}

/// Readers know kubelet's policies only, of which none is like numeric.
json AttributesOf(const TopologyView& view, const Held& held) {
  const bool is_kubelets = view.policy != TopologyPolicy::kNumeric;
  return {Attribute("topologyManagerPolicy",
                    std::string(ToString(is_kubelets ? view.policy : TopologyPolicy::kNone))),
          Attribute("topologyManagerScope", std::string(ToString(view.scope))),
          Attribute("nodeTopologyPodsFingerprint", PodsFingerprint(held.pods)),
          Attribute("nodeTopologyPodsFingerprintMethod", "with-exclusive-resources"),
          Attribute("qrmTopologyPolicy", std::string(ToString(view.policy)))};
}

}  // namespace

std::string AmountText(double amount) {
  constexpr int64_t kThousand = 1000;
  const int64_t thousandths = std::llround(std::floor(amount * kThousand + 1e-6));
  return thousandths % kThousand == 0 ? fmt::format("{}", thousandths / kThousand)
                                      : fmt::format("{}m", thousandths);
}

json NodeTopologyOf(const TopologyView& view) {
  Held held;
  view.state.ForEachPod([&](const PodRecord& pod) { AddPod(pod, held); });
  json zones = json::array();
  for (const NumaNode& node : view.machine.nodes()) {
    if (node.id < kMostNodes) {
      zones.push_back(ZoneOf(view, held, node));
    }
  }
  return {{"zones", std::move(zones)}, {"attributes", AttributesOf(view, held)}};
}

}  // namespace qrm::manager
