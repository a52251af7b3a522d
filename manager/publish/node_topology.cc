// Counts the recorded allocations by resource and NUMA node. The fingerprint of pods is XXH64 over
// the sorted hashes of their names.
#include "manager/publish/node_topology.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <xxhash.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "checkpoint/holdings.h"
#include "manager/demand/demand_source.h"
#include "topology/node_memory.h"

namespace qrm::manager {
namespace {

using checkpoint::ContainerRecord;
using checkpoint::PodRecord;
using nlohmann::json;

constexpr int kMostNodes = 64;
constexpr char kCpu[] = "cpu";
constexpr char kMemory[] = "memory";

struct Held {
  CpuSet cpus;
  std::map<std::string, std::map<int, double>> amounts;  // by resource and NUMA node
};

double AmountOn(const std::map<int, double>& amounts, int node) {
  const auto found = amounts.find(node);
  return found == amounts.end() ? 0 : found->second;
}

double AmountOf(const Held& held, const std::string& resource, int node) {
  const auto found = held.amounts.find(resource);
  return found == held.amounts.end() ? 0 : AmountOn(found->second, node);
}

/// The allocatable hugepages of `type` on `node`: all that it has, unless a plugin offers them.
double HugepagesOn(const TopologyView& view, const std::string& type, int node) {
  if (const auto offered = view.allocatable.find(type); offered != view.allocatable.end()) {
    return AmountOn(offered->second.allocatable_by_node, node);
  }
  const NumaNode* const found = view.machine.FindNode(node);
  double bytes = 0;
  for (const auto& [page_bytes, pages] :
       found == nullptr ? std::map<uint64_t, uint64_t>() : found->hugepages) {
    bytes += HugepagesType(page_bytes) == type ? static_cast<double>(page_bytes * pages) : 0;
  }
  return bytes;
}

using PodAmounts = std::map<std::string, checkpoint::PodMemory>;

/// Adds the hugepages of a container, which are on the nodes of its memory: what others left there,
/// in ascending order.
void AddHugepages(const TopologyView& view, const Held& held, const ContainerRecord& record,
                  const NumaMask& nodes, PodAmounts& amounts) {
  for (const auto& [type, requested] : record.requests) {
    if (!IsHugepages(type) || record.allocations.contains(type)) {
      continue;
    }
    double left = requested;
    std::map<uint64_t, uint64_t> parts;
    for (const int node : nodes) {
      const double free = HugepagesOn(view, type, node) - AmountOf(held, type, node) -
                          static_cast<double>(amounts[type].AtOnce(static_cast<uint64_t>(node)));
      const double part = std::min(left, std::max(0.0, free));
      parts[static_cast<uint64_t>(node)] = static_cast<uint64_t>(part);
      left -= part;
    }
    amounts[type].Add(record.type, parts);
  }
}

/// Adds the exclusive CPUs and other amounts of `pod`. Shared CPUs belong to no container, so they
/// do not count.
void AddPod(const TopologyView& view, const PodRecord& pod, Held& held) {
  PodAmounts amounts;
  for (const auto& [name, record] : pod.containers) {
    for (const auto& [resource, allocation] : record->allocations) {
      if (checkpoint::IsExclusiveCpuset(allocation)) {
        held.cpus |= CpuSet::Parse(allocation->value).value_or(CpuSet{});
      } else if (allocation->oci_property != kCpusetCpus) {
        amounts[resource].Add(record->type, allocation->amount_by_node);
      }
      if (allocation->oci_property == kCpusetMems) {
        AddHugepages(view, held, *record, NumaMask::Parse(allocation->value).value_or(NumaMask{}),
                     amounts);
      }
    }
  }
  for (const auto& [resource, amount] : amounts) {
    amount.ForEachNode([&, &resource = resource](uint64_t node, uint64_t at_once) {
      held.amounts[resource][static_cast<int>(node)] += static_cast<double>(at_once);
    });
  }
}

/// How many allocatable CPUs of `resource` on `node` are offline or exclusive.
int CpusTaken(const TopologyView& view, const AllocatableResource& resource, const Held& held,
              const NumaNode& node) {
  const CpuSet taken = (held.cpus | view.machine.OfflineNow()) & node.cpus;
  return (resource.allocatable_cpus.Empty() ? taken : taken & resource.allocatable_cpus).Count();
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
    if (capacity <= 0) {
      continue;
    }
    const double taken =
        AmountOf(held, name, node.id) + (name == kCpu ? CpusTaken(view, resource, held, node) : 0);
    resources.push_back(
        ResourceEntry(name, capacity, AmountOn(resource.allocatable_by_node, node.id), taken));
  }
  for (const auto& [page_bytes, pages] : node.hugepages) {
    const std::string name = HugepagesType(page_bytes);
    const auto bytes = static_cast<double>(page_bytes * pages);
    if (pages > 0 && !view.allocatable.contains(name)) {
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

bool IsNative(const std::string& resource) {
  return resource.find('/') == std::string::npos ||
         resource.find("kubernetes.io/") != std::string::npos;
}

/// Whether a Guaranteed container gets `amount` of `resource` exclusively.
bool IsOwn(const std::string& resource, double amount) {
  return resource == kCpu ? amount >= 1 && std::floor(amount) == amount
                          : resource == kMemory || IsHugepages(resource);
}

/// Decides like readers of the method `with-exclusive-resources`. They see the specs of pods and
/// the resources in zones, but no allocations. Source: scheduler-plugins @903da7df,
/// resourcerequests.AreExclusiveForPod.
class ReadersCount {
 public:
  explicit ReadersCount(const json& zones) {
    for (const json& zone : zones) {
      for (const json& resource : zone["resources"]) {
        listed_.insert(resource["name"].get<std::string>());
      }
    }
  }

  bool Counts(const PodRecord& pod) const {
    const bool is_guaranteed = pod.meta.qos_class == "Guaranteed";
    return std::any_of(pod.containers.begin(), pod.containers.end(), [&](const auto& container) {
      const ContainerRecord& record = *container.second;
      const bool stays =
          record.type == ContainerType::kMain || record.type == ContainerType::kSidecar;
      return stays && ((is_guaranteed && AsksForNatives(record)) || AsksForListed(record));
    });
  }

 private:
  /// Recorded requests are those that plugins serve. Recorded limits are those of the spec, which
  /// equal the requests in a Guaranteed pod. An estimated record lacks the memory limit, although
  /// such a pod has one.
  static bool AsksForNatives(const ContainerRecord& record) {
    const auto is_own = [](const auto& asked) { return IsOwn(asked.first, asked.second); };
    return record.request_source == kEstimate ||
           std::any_of(record.limits.begin(), record.limits.end(), is_own) ||
           std::any_of(record.requests.begin(), record.requests.end(),
                       [&](const auto& asked) { return asked.second > 0 && is_own(asked); });
  }

  /// A spec contains no implicit requests, and no extended resources without a limit.
  bool AsksForListed(const ContainerRecord& record) const {
    const auto& asked = record.request_source == kEstimate ? record.requests : record.limits;
    return std::any_of(asked.begin(), asked.end(), [&](const auto& entry) {
      return !IsNative(entry.first) && listed_.contains(entry.first);
    });
  }

  std::set<std::string> listed_;
};

std::string FingerprintOf(const TopologyView& view, const json& zones) {
  const ReadersCount readers(zones);
  std::vector<PodName> counted;
  view.state.ForEachPod([&](const PodRecord& pod) {
    if (readers.Counts(pod)) {
      counted.push_back({.pod_namespace = pod.meta.pod_namespace, .name = pod.meta.name});
    }
  });
  return PodsFingerprint(counted);
}

/// Readers know only kubelet's policies, and none of them is like numeric.
json AttributesOf(const TopologyView& view, const json& zones) {
  const bool is_kubelets = view.policy != TopologyPolicy::kNumeric;
  return {Attribute("topologyManagerPolicy",
                    std::string(ToString(is_kubelets ? view.policy : TopologyPolicy::kNone))),
          Attribute("topologyManagerScope", std::string(ToString(view.scope))),
          Attribute("nodeTopologyPodsFingerprint", FingerprintOf(view, zones)),
          Attribute("nodeTopologyPodsFingerprintMethod", "with-exclusive-resources"),
          Attribute("qrmTopologyPolicy", std::string(ToString(view.policy)))};
}

}  // namespace

uint64_t HashOf(std::string_view bytes, uint64_t seed) {
  return ::XXH64(bytes.data(), bytes.size(), seed);
}

std::string PodsFingerprint(const std::vector<PodName>& pods) {
  std::vector<uint64_t> hashes;
  hashes.reserve(pods.size());
  for (const PodName& pod : pods) {
    hashes.push_back(HashOf(pod.name, HashOf(pod.pod_namespace)));
  }
  std::sort(hashes.begin(), hashes.end());
  std::string bytes;
  for (const uint64_t hash : hashes) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      bytes += static_cast<char>(hash >> shift & 0xFFU);
    }
  }
  return fmt::format("pfp0v001{:016x}", HashOf(bytes));
}

std::string AmountText(double amount) {
  constexpr int64_t kThousand = 1000;
  const int64_t thousandths = std::llround(std::floor(amount * kThousand + 1e-6));
  return thousandths % kThousand == 0 ? fmt::format("{}", thousandths / kThousand)
                                      : fmt::format("{}m", thousandths);
}

json NodeTopologyOf(const TopologyView& view) {
  Held held;
  view.state.ForEachPod([&](const PodRecord& pod) { AddPod(view, pod, held); });
  json zones = json::array();
  for (const NumaNode& node : view.machine.nodes()) {
    if (node.id < kMostNodes) {
      zones.push_back(ZoneOf(view, held, node));
    }
  }
  json attributes = AttributesOf(view, zones);
  return {{"zones", std::move(zones)}, {"attributes", std::move(attributes)}};
}

}  // namespace qrm::manager
