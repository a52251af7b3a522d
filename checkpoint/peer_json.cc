// Reads and writes the peers' file: JSON whose entries hold JSON texts. Its checksum covers the
// decoded texts, so that the outer encoding may vary.
#include "checkpoint/peer_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"

namespace qrm::checkpoint {
namespace {

using Json = nlohmann::ordered_json;  // keys as in resourceplugin.v1alpha1, as Go writes them

struct Entry {
  std::string pod_uid;
  std::string container;
  std::string resource;
  std::string info;
};

/// What Go tells apart: a list that is missing, and one without members.
using Entries = std::optional<std::vector<Entry>>;

uint32_t Checksum(const Entries& entries) {
  std::string dump =
      "(checkpoint.checkpointData){PodResourceEntries:([]checkpoint.PodResourcesEntry)";
  if (entries.has_value()) {
    dump += '[';
    for (const Entry& entry : *entries) {
      dump += dump.ends_with('[') && &entry == entries->data() ? "" : " ";
      dump += fmt::format(
          "{{PodUID:(string){} ContainerName:(string){} ResourceName:(string){} "
          "AllocationInfo:(string){}}}",
          entry.pod_uid, entry.container, entry.resource, entry.info);
    }
    dump += ']';
  } else {
    dump += "<nil>";
  }
  dump += '}';

  uint32_t hash = 0x811c9dc5;
  for (const char byte : dump) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x01000193;
  }
  return hash;
}

Status NotAPeersFile(std::string_view why) {
  return Errorf(StatusCode::kInvalidArgument,
                "cannot read the file as a kubelet_qrm_checkpoint: {}; name a file that a peer or "
                "qrmctl checkpoint export wrote",
                why);
}

/// The text under `key`, or nothing when it is missing or no text.
std::optional<std::string> TextAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) {
    return std::nullopt;
  }
  return found->get<std::string>();
}

StatusOr<Entries> ReadEntries(const Json& file) {
  const auto data = file.find("Data");
  if (data == file.end() || !data->is_object()) {
    return NotAPeersFile("it has no object \"Data\"");
  }
  const auto list = data->find("PodResourceEntries");
  if (list == data->end() || list->is_null()) {
    return Entries();
  }
  if (!list->is_array()) {
    return NotAPeersFile("\"PodResourceEntries\" is not a list");
  }
  std::vector<Entry> entries;
  for (const Json& item : *list) {
    std::optional<std::string> uid = TextAt(item, "PodUID");
    std::optional<std::string> container = TextAt(item, "ContainerName");
    std::optional<std::string> resource = TextAt(item, "ResourceName");
    std::optional<std::string> info = TextAt(item, "AllocationInfo");
    if (!uid || !container || !resource || !info) {
      return NotAPeersFile(fmt::format("entry {} lacks a text", entries.size()));
    }
    entries.push_back({.pod_uid = *std::move(uid),
                       .container = *std::move(container),
                       .resource = *std::move(resource),
                       .info = *std::move(info)});
  }
  return Entries(std::move(entries));
}

std::string Text(const Json& json, const char* key) {
  return json.contains(key) ? json.at(key).get<std::string>() : std::string();
}

bool Flag(const Json& json, const char* key) {
  return json.contains(key) && json.at(key).get<bool>();
}

std::vector<TopologyHint> ReadHints(const Json& json) {
  std::vector<TopologyHint> hints;
  for (const Json& item : json.value("hints", Json::array())) {
    TopologyHint hint = {.preferred = Flag(item, "preferred")};
    for (const Json& node : item.value("nodes", Json::array())) {
      const auto id = node.get<uint64_t>();
      if (id >= static_cast<uint64_t>(IdSet::kMaxIds)) {
        throw Json::out_of_range::create(401, fmt::format("NUMA node {}", id), &node);
      }
      hint.nodes.Add(static_cast<int>(id));
    }
    hints.push_back(std::move(hint));
  }
  return hints;
}

/// Throws Json::exception for a member of another kind than expected.
ResourceAllocation ReadAllocationOrThrow(const Json& json) {
  ResourceAllocation allocation = {.oci_property = Text(json, "oci_property_name"),
                                   .value = Text(json, "allocation_result"),
                                   .is_node_resource = Flag(json, "is_node_resource"),
                                   .is_scalar_resource = Flag(json, "is_scalar_resource"),
                                   .quantity = json.value("allocated_quantity", 0.0),
                                   .envs = json.value("envs", StringMap()),
                                   .annotations = json.value("annotations", StringMap()),
                                   .exclusive = Flag(json, "exclusive"),
                                   .may_share = Text(json, "may_share"),
                                   .shares = Text(json, "shares"),
                                   .shares_of = Text(json, "shares_of"),
                                   .pool = Text(json, "pool"),
                                   .grown = Text(json, "grown"),
                                   .lacks = json.value("lacks", 0.0),
                                   .decided_by = Text(json, "decided_by"),
                                   .class_defaults = json.value("class_defaults", StringMap())};
  if (json.contains("resource_hints")) {
    allocation.hints = ReadHints(json.at("resource_hints"));
  }
  const Json amounts = json.value("topology_assignments", Json::object());
  for (const auto& [node, amount] : amounts.items()) {
    allocation.amount_by_node[std::stoull(node)] = amount.get<uint64_t>();
  }
  for (const Json& item : json.value("mounts", Json::array())) {
    allocation.mounts.push_back({.container_path = Text(item, "container_path"),
                                 .host_path = Text(item, "host_path"),
                                 .read_only = Flag(item, "read_only")});
  }
  for (const Json& item : json.value("devices", Json::array())) {
    allocation.devices.push_back({.container_path = Text(item, "container_path"),
                                  .host_path = Text(item, "host_path"),
                                  .permissions = Text(item, "permissions")});
  }
  return allocation;
}

/// The same rules as for what a plugin answers.
Status Validate(const ResourceAllocation& allocation) {
  if (allocation.oci_property == kCpusetCpus) {
    QRM_RETURN_IF_ERROR(CpuSet::Parse(allocation.value).status());
  }
  QRM_RETURN_IF_ERROR(CpuSet::Parse(allocation.may_share).status());
  QRM_RETURN_IF_ERROR(CpuSet::Parse(allocation.shares).status());
  QRM_RETURN_IF_ERROR(CpuSet::Parse(allocation.grown).status());
  if (allocation.oci_property == kCpusetMems) {
    QRM_RETURN_IF_ERROR(NumaMask::Parse(allocation.value).status());
  }
  return allocation.quantity >= 0 ? OkStatus()
                                  : Errorf(StatusCode::kInvalidArgument,
                                           "its quantity {} is negative", allocation.quantity);
}

StatusOr<ResourceAllocation> ReadAllocation(const std::string& info) {
  const StatusOr<nlohmann::json> json = ParseJson(info);
  if (!json.ok()) {
    return Errorf(StatusCode::kInvalidArgument, "it {}", MessageOf(json.status()));
  }
  try {
    ResourceAllocation allocation = ReadAllocationOrThrow(*json);
    QRM_RETURN_IF_ERROR(Validate(allocation));
    return allocation;
  } catch (const std::exception& error) {  // of the JSON library and of std::stoull
    return Errorf(StatusCode::kInvalidArgument, "{}", error.what());
  }
}

Json WriteHints(const std::vector<TopologyHint>& hints) {
  Json list = Json::array();
  for (const TopologyHint& hint : hints) {
    Json item = Json::object();
    if (!hint.nodes.Empty()) {
      item["nodes"] = std::vector<int>(hint.nodes.begin(), hint.nodes.end());
    }
    if (hint.preferred) {
      item["preferred"] = true;
    }
    list.push_back(std::move(item));
  }
  Json json = Json::object();
  if (!list.empty()) {
    json["hints"] = std::move(list);
  }
  return json;
}

/// As Go writes it: without a fraction where there is none.
Json WriteNumber(double number) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (number == std::floor(number) && std::abs(number) < kExact) {
    return static_cast<int64_t>(number);
  }
  return number;
}

/// Empty values are left out, as Go's omitempty does.
template <typename Value>
void PutUnlessEmpty(Json& json, const char* key, const Value& value) {
  if (value != Value()) {
    json[key] = value;
  }
}

Json WriteAllocation(const ResourceAllocation& allocation) {
  Json json = Json::object();
  PutUnlessEmpty(json, "oci_property_name", allocation.oci_property);
  PutUnlessEmpty(json, "is_node_resource", allocation.is_node_resource);
  PutUnlessEmpty(json, "is_scalar_resource", allocation.is_scalar_resource);
  if (allocation.quantity != 0) {
    json["allocated_quantity"] = WriteNumber(allocation.quantity);
  }
  PutUnlessEmpty(json, "allocation_result", allocation.value);
  PutUnlessEmpty(json, "envs", allocation.envs);
  PutUnlessEmpty(json, "annotations", allocation.annotations);
  if (allocation.hints.has_value()) {
    json["resource_hints"] = WriteHints(*allocation.hints);
  }
  for (const auto& [node, amount] : allocation.amount_by_node) {
    json["topology_assignments"][std::to_string(node)] = amount;
  }
  for (const Mount& mount : allocation.mounts) {
    Json item = Json::object();
    PutUnlessEmpty(item, "container_path", mount.container_path);
    PutUnlessEmpty(item, "host_path", mount.host_path);
    PutUnlessEmpty(item, "read_only", mount.read_only);
    json["mounts"].push_back(std::move(item));
  }
  for (const DeviceSpec& device : allocation.devices) {
    Json item = Json::object();
    PutUnlessEmpty(item, "container_path", device.container_path);
    PutUnlessEmpty(item, "host_path", device.host_path);
    PutUnlessEmpty(item, "permissions", device.permissions);
    json["devices"].push_back(std::move(item));
  }
  PutUnlessEmpty(json, "exclusive", allocation.exclusive);
  PutUnlessEmpty(json, "may_share", allocation.may_share);
  PutUnlessEmpty(json, "shares", allocation.shares);
  PutUnlessEmpty(json, "shares_of", allocation.shares_of);
  PutUnlessEmpty(json, "pool", allocation.pool);
  PutUnlessEmpty(json, "grown", allocation.grown);
  if (allocation.lacks != 0) {
    json["lacks"] = allocation.lacks;
  }
  PutUnlessEmpty(json, "decided_by", allocation.decided_by);
  PutUnlessEmpty(json, "class_defaults", allocation.class_defaults);
  return json;
}

StatusOr<std::string> Dump(const Json& json) {
  try {
    return json.dump();
  } catch (const Json::exception&) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot write the checkpoint as JSON: it holds text that is not UTF-8; find and "
                  "correct the plugin that sent it");
  }
}

StatusOr<std::vector<Entry>> WriteEntries(const AllocationByContainer& allocations) {
  std::vector<Entry> entries;
  for (const auto& [key, by_resource] : allocations) {
    for (const auto& [resource, allocation] : by_resource) {
      if (!std::isfinite(allocation->quantity)) {
        return Errorf(StatusCode::kInvalidArgument,
                      "cannot write {} of {} as JSON: its quantity is not finite; correct the "
                      "plugin",
                      resource, key.container);
      }
      QRM_ASSIGN_OR_RETURN(std::string info, Dump(WriteAllocation(allocation)));
      entries.push_back({.pod_uid = key.pod_uid,
                         .container = key.container,
                         .resource = resource,
                         .info = std::move(info)});
    }
  }
  return entries;
}

}  // namespace

StatusOr<PeerCheckpoint> ParsePeerCheckpoint(std::string_view text) {
  const StatusOr<nlohmann::json> parsed = ParseJson(text);
  if (!parsed.ok() || !parsed->is_object()) {
    return NotAPeersFile("it " +
                         (parsed.ok() ? "is not a JSON object" : MessageOf(parsed.status())));
  }
  const Json file = *parsed;
  const auto stored = file.find("Checksum");
  if (stored == file.end() || !stored->is_number_unsigned()) {
    return NotAPeersFile("it has no number \"Checksum\"");
  }
  QRM_ASSIGN_OR_RETURN(const Entries entries, ReadEntries(file));
  const uint32_t sum = Checksum(entries);
  if (stored->get<uint64_t>() != sum) {
    return Errorf(StatusCode::kDataLoss,
                  "cannot trust the kubelet_qrm_checkpoint: it says checksum {}, its content has "
                  "{}; use an undamaged copy",
                  stored->get<uint64_t>(), sum);
  }

  PeerCheckpoint checkpoint;
  for (const Entry& entry : entries.value_or(std::vector<Entry>())) {
    StatusOr<ResourceAllocation> allocation = ReadAllocation(entry.info);
    if (!allocation.ok() || entry.pod_uid.empty() || entry.container.empty() ||
        entry.resource.empty()) {
      checkpoint.skipped.push_back(fmt::format(
          "skipped {} of container {} of pod {}: {}", entry.resource, entry.container,
          entry.pod_uid, allocation.ok() ? "it lacks a name" : MessageOf(allocation.status())));
      continue;
    }
    checkpoint
        .allocations[{.pod_uid = entry.pod_uid, .container = entry.container}][entry.resource] =
        *std::move(allocation);
  }
  return checkpoint;
}

StatusOr<std::string> ToPeerCheckpoint(const AllocationByContainer& allocations) {
  QRM_ASSIGN_OR_RETURN(std::vector<Entry> entries, WriteEntries(allocations));
  Json list = Json::array();
  for (const Entry& entry : entries) {
    list.push_back({{"PodUID", entry.pod_uid},
                    {"ContainerName", entry.container},
                    {"ResourceName", entry.resource},
                    {"AllocationInfo", entry.info}});
  }
  Json file = Json::object();
  file["Data"]["PodResourceEntries"] = std::move(list);
  file["Checksum"] = Checksum(Entries(std::move(entries)));
  return Dump(file);
}

AllocationByContainer AllocationsOf(const NodeState& state) {
  AllocationByContainer allocations;
  state.ForEachPod([&](const PodRecord& pod) {
    for (const auto& [container, record] : pod.containers) {
      if (!record->allocations.empty()) {
        allocations[{.pod_uid = pod.meta.uid, .container = container}] = record->allocations;
      }
    }
  });
  return allocations;
}

namespace {

/// The CPUs of a container that has as many as it was given; empty for others.
CpuSet CountedCpus(const AllocationByResource& allocations) {
  for (const auto& [resource, allocation] : allocations) {
    const StatusOr<CpuSet> cpus =
        allocation->oci_property == kCpusetCpus ? CpuSet::Parse(allocation->value) : CpuSet();
    if (cpus.ok() && !cpus->Empty()) {
      return static_cast<double>(cpus->Count()) == allocation->quantity ? *cpus : CpuSet();
    }
  }
  return {};
}

/// Peers do not write which CPUs are exclusive. CPUs count as exclusive if the container has as
/// many as its quantity and shares none. The only user of a pool looks the same: it keeps the CPUs
/// as exclusive CPUs until it is removed.
AllocationByContainer WithOwners(AllocationByContainer allocations) {
  CpuSet seen;
  CpuSet shared;
  for (const auto& [key, by_resource] : allocations) {
    for (const auto& [resource, allocation] : by_resource) {
      if (allocation->oci_property == kCpusetCpus) {
        const CpuSet cpus = CpuSet::Parse(allocation->value).value_or(CpuSet());
        shared |= seen & cpus;
        seen |= cpus;
      }
    }
  }
  for (auto& [key, by_resource] : allocations) {
    const CpuSet cpus = CountedCpus(by_resource);
    for (auto& [resource, allocation] : by_resource) {
      allocation.Edit().exclusive =
          allocation->oci_property == kCpusetCpus && !cpus.Empty() && !cpus.Intersects(shared);
    }
  }
  return allocations;
}

bool SaysOwners(const AllocationByContainer& allocations) {
  return std::any_of(allocations.begin(), allocations.end(), [](const auto& container) {
    return std::any_of(container.second.begin(), container.second.end(),
                       [](const auto& entry) { return entry.second->exclusive; });
  });
}

}  // namespace

Change ImportChange(const NodeState& state, const AllocationByContainer& allocations) {
  Change change;
  const AllocationByContainer owned =
      SaysOwners(allocations) ? allocations : WithOwners(allocations);
  for (const auto& [key, by_resource] : owned) {
    const PodRecord* pod = state.FindPod(key.pod_uid);
    const ContainerRecord* known = state.Find(key);
    Change::PutContainer put = {.pod = pod != nullptr ? pod->meta : PodMeta{.uid = key.pod_uid},
                                .container = key.container,
                                .record = known != nullptr ? *known : ContainerRecord()};
    if (known == nullptr) {
      put.record.request_source = "import";
    }
    put.record.allocations = by_resource;
    put.record.origins.Edit().clear();
    for (const auto& [resource, allocation] : by_resource) {
      put.record.origins.Edit()[resource] = {.plugin = resource, .endpoint = "import"};
    }
    change.put_containers.push_back(std::move(put));
  }
  return change;
}

}  // namespace qrm::checkpoint
