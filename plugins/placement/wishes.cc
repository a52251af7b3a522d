// Derives the list of wishes from a container's demand.
#include "plugins/placement/wishes.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/base/foreign_text.h"
#include "plugins/placement/requests.h"
#include "plugins/rules/qos_annotations.h"

namespace qrm::placement {
namespace {

using rules::QosLevel;
using rules::QosRequest;

std::string QosKey(const char* level) {
  return fmt::format("annotation katalyst.kubewharf.io/qos_level={}", level);
}

std::string RoleKey(const ContainerDemand& demand) {
  const std::string key = demand.role_key.empty() ? "its role" : demand.role_key;
  return fmt::format("{}={}", key, Quoted(demand.pod.role));
}

void AddQosWishes(const QosRequest& qos, std::vector<Wish>& wishes) {
  if (qos.level == QosLevel::kSystem) {
    wishes.push_back({.feature = Feature::kReservedCpus, .key = QosKey("system_cores")});
  }
  if (qos.level == QosLevel::kDedicated) {
    wishes.push_back({.feature = Feature::kOwnCpus, .key = QosKey("dedicated_cores")});
  }
  if (qos.numa_exclusive) {
    wishes.push_back(
        {.feature = Feature::kNumaNodes,
         .key = "numa_exclusive of annotation katalyst.kubewharf.io/memory_enhancement"});
  }
  if (!qos.cpuset_pool.empty()) {
    wishes.push_back({.feature = Feature::kPool,
                      .name = qos.cpuset_pool,
                      .key = "cpuset_pool of annotation katalyst.kubewharf.io/cpu_enhancement"});
  }
}

bool IsNative(const std::string& resource, const AdmissionOptions& options) {
  const std::vector<std::string>& natives = options.native_resources;
  return std::find(natives.begin(), natives.end(), resource) != natives.end() ||
         IsHugepages(resource);
}

StatusOr<std::vector<Wish>> WishesOf(const ContainerDemand& demand,
                                     const AdmissionOptions& options) {
  std::vector<Wish> wishes;
  if (WishesToOptOut(demand, options)) {
    wishes.push_back({.feature = Feature::kOptOut, .key = "annotation " + options.skip_annotation});
  }
  QRM_ASSIGN_OR_RETURN(const QosRequest qos, rules::ParseQosAnnotations(demand.pod.annotations));
  AddQosWishes(qos, wishes);
  if (!demand.pod.role.empty()) {
    wishes.push_back({.feature = Feature::kRole, .name = demand.pod.role, .key = RoleKey(demand)});
  }
  return wishes;
}

/// Why a container has exclusive CPUs: a rule of the cpu plugin, its role, or its QoS class.
std::string ReasonOf(const ContainerDemand& demand, const ResourceAllocation& own) {
  if (own.decided_by.starts_with("rules[")) {
    return own.decided_by;
  }
  return demand.pod.role.empty() ? "its QoS class " + demand.pod.qos_class : RoleKey(demand);
}

}  // namespace

bool WishesToOptOut(const ContainerDemand& demand, const AdmissionOptions& options) {
  const auto found = demand.pod.annotations.find(options.skip_annotation);
  return found != demand.pod.annotations.end() && !found->second.empty() &&
         found->second != "false";
}

Status CheckWishes(const ContainerDemand& demand, const std::map<std::string, double>& requests,
                   const AdmissionOptions& options) {
  QRM_ASSIGN_OR_RETURN(const std::vector<Wish> wishes, WishesOf(demand, options));
  for (const Wish& wish : wishes) {
    QRM_RETURN_IF_ERROR(options.permissions.Check(demand.pod.pod_namespace, wish));
  }
  for (const auto& request : requests) {
    QRM_RETURN_IF_ERROR(CheckRequest(demand, request, options));
  }
  return OkStatus();
}

Status CheckRequest(const ContainerDemand& demand, const std::pair<std::string, double>& request,
                    const AdmissionOptions& options) {
  const auto& [requested, amount] = request;
  const std::string& resource = PluginNameOf(requested, options);
  if (amount <= 0 || IsNative(resource, options)) {
    return OkStatus();
  }
  return options.permissions.Check(demand.pod.pod_namespace,
                                   {.feature = Feature::kResource,
                                    .name = resource,
                                    .key = demand.requests.contains(requested)
                                               ? "its request of " + requested
                                               : "implicit-resources by its role or annotation"});
}

Status CheckGiven(const ContainerDemand& demand, const AllocationByResource& allocations,
                  const AdmissionOptions& options) {
  for (const auto& [resource, allocation] : allocations) {
    if (allocation->exclusive) {
      const std::string key = ReasonOf(demand, allocation);
      QRM_RETURN_IF_ERROR(options.permissions.Check(demand.pod.pod_namespace,
                                                    {.feature = Feature::kOwnCpus, .key = key}));
    }
    if (!allocation->pool.empty()) {
      QRM_RETURN_IF_ERROR(options.permissions.Check(
          demand.pod.pod_namespace,
          {.feature = Feature::kPool, .name = allocation->pool, .key = allocation->decided_by}));
    }
    const std::vector<std::string>& keys = options.netns_annotations;
    if (std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
          return allocation->annotations.contains(key);
        })) {
      QRM_RETURN_IF_ERROR(options.permissions.Check(
          demand.pod.pod_namespace,
          {.feature = Feature::kNetworkNamespaces, .key = "its request of " + resource}));
    }
  }
  return OkStatus();
}

}  // namespace qrm::placement
