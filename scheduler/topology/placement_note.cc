// Writes no more than the plugins rebuild their state from; the requests are the pod's.
#include "scheduler/topology/placement_note.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"
#include "api/base/foreign_text.h"
#include "api/base/rejected.h"
#include "plugins/cpu/config/classify.h"
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/memory/memory_plugin.h"
#include "plugins/nic/config.h"
#include "plugins/nic/state.h"
#include "plugins/placement/requests.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;

/// Null for shared things, which need not be remembered.
json ToNote(const std::string& resource, const ResourceAllocation& allocation) {
  if (resource == cpu::kResource) {
    if (allocation.exclusive && !allocation.shares_of.empty()) {
      return {{"cpus", allocation.value},
              {"may_share", allocation.may_share},
              {"shares_of", allocation.shares_of}};
    }
    if (!allocation.exclusive && !allocation.shares_of.empty()) {
      return {{"shares_of", allocation.shares_of}};  // not where its rule would lead it
    }
    return allocation.exclusive ? json(allocation.value) : json();
  }
  if (resource == memory::kResource) {
    if (allocation.oci_property != kCpusetMems) {
      return {};
    }
    json bytes = json::object();
    for (const auto& [node, amount] : allocation.amount_by_node) {
      bytes[std::to_string(node)] = amount;
    }
    return {{"nodes", allocation.value}, {"bytes", bytes}};
  }
  return {{"interface", allocation.value}, {"netns", nic::NicOf(allocation).netns}};
}

ResourceAllocation FromNote(const std::string& resource, const json& note) {
  ResourceAllocation allocation;
  if (note.is_null()) {
    return allocation;
  }
  if (resource == cpu::kResource) {
    allocation.exclusive = note.is_string() || note.contains("cpus");
    if (!allocation.exclusive) {
      allocation.shares_of = note.at("shares_of").get<std::string>();
      return allocation;
    }
    if (note.is_string()) {
      allocation.value = note.get<std::string>();
      return allocation;
    }
    allocation.value = note.at("cpus").get<std::string>();
    allocation.may_share = note.at("may_share").get<std::string>();
    allocation.shares_of = note.at("shares_of").get<std::string>();
    return allocation;
  }
  if (resource == memory::kResource) {
    allocation.oci_property = kCpusetMems;
    allocation.value = note.at("nodes").get<std::string>();
    for (const auto& [node, amount] : note.at("bytes").items()) {
      allocation.amount_by_node[std::stoull(node)] = amount.get<uint64_t>();
    }
    return allocation;
  }
  allocation.value = note.at("interface").get<std::string>();
  if (const auto netns = note.at("netns").get<std::string>(); !netns.empty()) {
    allocation.annotations[nic::NicNames().netns_annotation] = netns;
  }
  return allocation;
}

/// Throws what json throws. Errors: as RequestsOf.
StatusOr<placement::PodPlacement> FromNotes(const placement::NodeModel& model, const Pod& pod,
                                            const json& notes) {
  placement::PodPlacement placement;
  const json& containers = notes.at("containers");
  QRM_ASSIGN_OR_RETURN(const std::vector<placement::Requests> asked,
                       placement::RequestsOf(model, DemandsOf(model, pod)));
  for (const placement::Requests& requests : asked) {
    for (const ContainerRequest& request : requests) {
      const json container = containers.value(request.key.container, json::object());
      placement.grants[request.resource][request.key] = {
          request, FromNote(request.resource, container.value(request.resource, json()))};
    }
  }
  const json inits = notes.value("inits", json::object());
  for (const auto& [container, bytes] : inits.items()) {
    placement.inits[{pod.uid, container}] = bytes.get<MemoryBytes>();
  }
  return placement;
}

/// Whether `cpus` are no more than the request of `request` gets by numa_exclusive.
bool IsWithinNodes(const placement::NodeModel& model, const ContainerRequest& request,
                   double cpus) {
  const auto placement = cpu::Classify(model.cpu, request);
  const auto percent = static_cast<double>(model.cpu.exclusive_node_percent);
  return placement.ok() && placement->exclusive && placement->exclusive->whole_nodes &&
         cpus <= model.machine.cpu_set().Count() && cpus * percent <= request.quantity() * 100;
}

/// Whether it has no more than it requests: a note may be forged where no admission policy rejects
/// forged ones.
bool IsWithinRequest(const placement::NodeModel& model, const ContainerRequest& request,
                     const ResourceAllocation& allocation) {
  double amount = 0;
  if (request.resource == cpu::kResource && allocation.exclusive) {
    const StatusOr<CpuSet> cpus = CpuSet::Parse(allocation.value);
    amount = cpus.ok() ? cpus->Count() : std::numeric_limits<double>::infinity();
    if (IsWithinNodes(model, request, amount)) {
      return true;
    }
  }
  for (const auto& [node, bytes] : allocation.amount_by_node) {
    amount += static_cast<double>(bytes);
  }
  return amount <= request.quantity();
}

bool IsWithinRequest(const Pod& pod, const std::string& init, const MemoryBytes& bytes) {
  const auto container =
      std::find_if(pod.containers.begin(), pod.containers.end(), [&](const PodContainer& each) {
        return each.kind == PodContainer::Kind::kInit && each.name == init;
      });
  return container != pod.containers.end() &&
         std::all_of(bytes.begin(), bytes.end(), [&](const auto& amount) {
           const auto request = container->requests.find(amount.first);
           return request != container->requests.end() &&
                  static_cast<double>(amount.second) <= request->second;
         });
}

bool IsWithinRequests(const placement::NodeModel& model, const Pod& pod,
                      const placement::PodPlacement& placement) {
  for (const auto& [resource, grants] : placement.grants) {
    for (const auto& [key, grant] : grants) {
      if (!IsWithinRequest(model, grant.request, *grant.allocation)) {
        return false;
      }
    }
  }
  return std::all_of(placement.inits.begin(), placement.inits.end(), [&](const auto& init) {
    return IsWithinRequest(pod, init.first.container, init.second);
  });
}

StatusOr<placement::PodPlacement> ParsePlacement(const placement::NodeModel& model, const Pod& pod,
                                                 const std::string& text) {
  const auto refuse = [&](std::string_view cause) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot count annotation {} of pod {}/{}: it {}; see who may bind pods with it",
                  kPlacement, pod.pod_namespace, pod.name, cause);
  };
  const StatusOr<json> notes = ParseJson(text);
  if (!notes.ok()) {
    return refuse(MessageOf(notes.status()));
  }
  try {
    QRM_ASSIGN_OR_RETURN(placement::PodPlacement placement, FromNotes(model, pod, *notes));
    if (!IsWithinRequests(model, pod, placement)) {
      return refuse("gives more than the pod requests");
    }
    return placement;
  } catch (const std::exception& error) {  // json's, and that of a node that is not a number
    return refuse(fmt::format("is none of qrm-scheduler's: {}", Quoted(error.what())));
  }
}

}  // namespace

// Fills in what the scheduler knows of a pod; the rest is its node's.
placement::PodDemands DemandsOf(const placement::NodeModel& model, const Pod& pod) {
  placement::ContainerDemand common{.pod = {.uid = pod.uid,
                                            .pod_namespace = pod.pod_namespace,
                                            .name = pod.name,
                                            .qos_class = pod.qos_class,
                                            .labels = pod.labels,
                                            .annotations = pod.annotations},
                                    .runtime_class = pod.runtime_class,
                                    .controller_kind = pod.controller_kind,
                                    .priority_class = pod.priority_class};
  common.role_key = placement::ReadRole(model.pod_keys, common.pod);
  return placement::DemandsOf(common, pod.containers,
                              placement::MainContainerOf(model.pod_keys, common.pod));
}

std::string WritePlacement(const placement::PodPlacement& placement) {
  json containers = json::object();
  for (const auto& [resource, grants] : placement.grants) {
    for (const auto& [key, grant] : grants) {
      if (json note = ToNote(resource, grant.allocation); !note.is_null()) {
        containers[key.container][resource] = std::move(note);
      }
    }
  }
  if (containers.empty()) {
    return {};
  }
  json notes = {{"containers", std::move(containers)}};
  for (const auto& [key, bytes] : placement.inits) {
    notes["inits"][key.container] = bytes;
  }
  return notes.dump();
}

std::optional<placement::PodPlacement> ReadPlacement(const placement::NodeModel& model,
                                                     const Pod& pod) {
  const auto text = pod.annotations.find(kPlacement);
  if (text == pod.annotations.end()) {
    return std::nullopt;
  }
  StatusOr<placement::PodPlacement> placement = ParsePlacement(model, pod, text->second);
  if (!placement.ok()) {
    Reject(Rejected::kPlacement, MessageOf(placement.status()));
    return std::nullopt;
  }
  return *std::move(placement);
}

}  // namespace qrm::scheduler
