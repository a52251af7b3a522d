// Reads and writes the peers' file: JSON whose entries hold JSON texts. Its checksum covers the
// decoded texts, so that the outer encoding may vary.
#include "checkpoint/peer_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include <google/protobuf/util/json_util.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"
#include "api/base/foreign_text.h"
#include "api/proto/resourceplugin/v1alpha1/api.pb.h"
#include "api/wire.h"

namespace qrm::checkpoint {
namespace {

namespace json_util = google::protobuf::util;
using Json = nlohmann::ordered_json;

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

/// By the same rules as what a plugin answers.
StatusOr<ResourceAllocation> ReadAllocation(const std::string& info) {
  wire::pb::ResourceAllocationInfo message;
  json_util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed = json_util::JsonStringToMessage(info, &message, options);
  return parsed.ok() ? wire::FromWire(message)
                     : Errorf(StatusCode::kInvalidArgument, "it is not an allocation in JSON: {}",
                              Escaped(parsed.ToString()));
}

Status NotUtf8() {
  return Errorf(StatusCode::kInvalidArgument,
                "cannot write the checkpoint as JSON: it holds text that is not UTF-8; find and "
                "correct the plugin that sent it");
}

/// protobuf's JSON has numbers of 64 bits as texts.
// NOLINTNEXTLINE(misc-no-recursion): as deep as a list of hints
void TextsToNumbers(Json& json) {
  if (json.is_string()) {
    json = std::stoull(json.get<std::string>());
  } else if (json.is_structured()) {
    std::for_each(json.begin(), json.end(), TextsToNumbers);
  }
}

/// As Go writes it: numbers of 64 bits as numbers, and maps in the order of their keys.
StatusOr<std::string> WriteAllocation(const ResourceAllocation& allocation) {
  std::string text;
  json_util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const auto written = json_util::MessageToJsonString(wire::ToWire(allocation), &text, options);
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!written.ok() || !json.is_object()) {
    return NotUtf8();
  }
  for (auto& [name, value] : json.items()) {
    if (name == "topology_assignments" || name == "resource_hints") {
      TextsToNumbers(value);
    }
    if (value.is_object()) {
      value = nlohmann::json(value);
    }
  }
  return json.dump();
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
      QRM_ASSIGN_OR_RETURN(std::string info, WriteAllocation(allocation));
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
  try {
    return file.dump();
  } catch (const Json::exception&) {
    return NotUtf8();
  }
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
