// Converts JSON to manifests without assuming that any value has the expected type.
#include "manager/kubelet/pod_list.h"

#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"

namespace qrm::manager {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostPods = 10'000;  // many times the pods of any kubelet

const Json& PartOf(const Json& json, const char* name) {
  static const Json nothing;
  const auto found = json.is_object() ? json.find(name) : json.end();
  return json.is_object() && found != json.end() ? *found : nothing;
}

std::string TextOf(const Json& json, const char* name) {
  const Json& part = PartOf(json, name);
  return part.is_string() ? part.get<std::string>() : std::string();
}

/// An object of texts; numbers are taken as written, since quantities may be numbers.
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
  return {.requests = TextsOf(PartOf(json, "requests")),
          .limits = TextsOf(PartOf(json, "limits")),
          .has_claims = !PartOf(json, "claims").empty()};
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

void AddPod(const Json& pod, PodList& list) {
  StatusOr<PodSpec> spec = ReadManifest(ManifestOf(pod));
  if (spec.ok()) {
    list.specs.push_back(*std::move(spec));
  } else {
    list.unusable.push_back(spec.status());
  }
}

Status NoPodList(const std::string& cause) {
  return Errorf(StatusCode::kInvalidArgument,
                "cannot read kubelet's pods: {}; set kubelet-url to a kubelet's address", cause);
}

}  // namespace

StatusOr<PodList> ParsePodList(const std::string& json) {
  PodList list;
  std::size_t pods = 0;
  const StatusOr<Json> parsed = ParseJsonList(json, [&](const Json& pod) {
    if (++pods <= kMostPods) {
      AddPod(pod, list);
    }
  });
  if (!parsed.ok()) {
    return NoPodList("the answer " + MessageOf(parsed.status()));
  }
  const Json& items = PartOf(*parsed, "items");
  if (TextOf(*parsed, "kind") != "PodList" || !(items.is_array() || items.is_null())) {
    return NoPodList("the answer is not a PodList");
  }
  if (pods > kMostPods) {
    return NoPodList(fmt::format("the answer has {} pods, more than {}", pods, kMostPods));
  }
  return list;
}

}  // namespace qrm::manager
