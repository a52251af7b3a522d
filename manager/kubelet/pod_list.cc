// Converts JSON to manifests without assuming that any value has the expected type.
#include "manager/kubelet/pod_list.h"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"

namespace qrm::manager {
namespace {

using Json = nlohmann::json;

const Json& PartOf(const Json& json, const char* name) {
  static const Json nothing;
  const auto found = json.is_object() ? json.find(name) : json.end();
  return json.is_object() && found != json.end() ? *found : nothing;
}

std::string TextOf(const Json& json, const char* name) {
  const Json& part = PartOf(json, name);
  return part.is_string() ? part.get<std::string>() : std::string();
}

/// An object of texts; numbers are taken as they are written, since quantities may be numbers.
StringMap TextsOf(const Json& json) {
  StringMap texts;
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      texts[key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  return texts;
}

PodManifest::Resources ResourcesOf(const Json& json) {
  return {.requests = TextsOf(PartOf(json, "requests")), .limits = TextsOf(PartOf(json, "limits"))};
}

std::vector<PodManifest::Container> ContainersOf(const Json& json) {
  std::vector<PodManifest::Container> containers;
  if (json.is_array()) {
    for (const Json& container : json) {
      containers.push_back({.name = TextOf(container, "name"),
                            .restart_policy = TextOf(container, "restartPolicy"),
                            .resources = ResourcesOf(PartOf(container, "resources"))});
    }
  }
  return containers;
}

std::string ControllerKindOf(const Json& metadata) {
  const Json& owners = PartOf(metadata, "ownerReferences");
  if (owners.is_array()) {
    for (const Json& owner : owners) {
      if (PartOf(owner, "controller") == true) {
        return TextOf(owner, "kind");
      }
    }
  }
  return {};
}

std::optional<int> PriorityOf(const Json& spec) {
  const Json& priority = PartOf(spec, "priority");
  return priority.is_number_integer() ? std::optional(priority.get<int>()) : std::nullopt;
}

PodManifest ManifestOf(const Json& pod) {
  const Json& metadata = PartOf(pod, "metadata");
  const Json& spec = PartOf(pod, "spec");
  PodManifest manifest{.uid = TextOf(metadata, "uid"),
                       .pod_namespace = TextOf(metadata, "namespace"),
                       .name = TextOf(metadata, "name"),
                       .annotations = TextsOf(PartOf(metadata, "annotations")),
                       .controller_kind = ControllerKindOf(metadata),
                       .priority_class = TextOf(spec, "priorityClassName"),
                       .priority = PriorityOf(spec),
                       .runtime_class = TextOf(spec, "runtimeClassName"),
                       .init_containers = ContainersOf(PartOf(spec, "initContainers")),
                       .containers = ContainersOf(PartOf(spec, "containers")),
                       .ephemeral_containers = ContainersOf(PartOf(spec, "ephemeralContainers")),
                       .resources = ResourcesOf(PartOf(spec, "resources"))};
  for (PodManifest::Container& container : manifest.ephemeral_containers) {
    container.resources = {};
  }
  return manifest;
}

}  // namespace

StatusOr<PodList> ParsePodList(const std::string& json) {
  Json parsed;
  try {
    parsed = Json::parse(json);
  } catch (const Json::exception& error) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read kubelet's pods: {}; set kubelet-url to a kubelet's address",
                  error.what());
  }
  const Json& items = PartOf(parsed, "items");
  if (TextOf(parsed, "kind") != "PodList" || !(items.is_array() || items.is_null())) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read kubelet's pods: the answer is no PodList; set kubelet-url to a "
                  "kubelet's address");
  }
  PodList list;
  for (const Json& item : items) {
    StatusOr<PodSpec> spec = ReadManifest(ManifestOf(item));
    if (spec.ok()) {
      list.specs.push_back(*std::move(spec));
    } else {
      list.unusable.push_back(spec.status());
    }
  }
  return list;
}

}  // namespace qrm::manager
