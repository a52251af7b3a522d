// Compares a Node with the wanted contents.
#include "manager/publish/node_patch.h"

#include <cmath>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/quantity.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {
namespace {

using nlohmann::json;

/// Names in Kubernetes' domains cannot be requested as extended resources.
bool IsKubernetes(const std::string& domain) {
  return domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
}

bool IsExtendedResource(const std::string& name) {
  const auto slash = name.find('/');
  return slash != std::string::npos && CheckResourceName(name).ok() &&
         !IsKubernetes(name.substr(0, slash)) && !name.starts_with("requests.");
}

std::string TextAt(const json& object, const json::json_pointer& path) {
  return object.contains(path) && object[path].is_string() ? object[path].get<std::string>()
                                                           : std::string();
}

std::string AmountIn(const json& node, const char* list, const std::string& name) {
  return TextAt(node, json::json_pointer("/status") / list / name);
}

/// Whether the Node has `amount`. Compares numbers, because the API server writes 1000 as 1k.
bool Says(const json& node, const char* list, const std::string& name, const std::string& amount) {
  const StatusOr<double> said = ParseQuantity(AmountIn(node, list, name));
  const StatusOr<double> wished = ParseQuantity(amount);
  return said.ok() && wished.ok() && *said == *wished;
}

std::string AnnotationOf(const json& node, const char* key) {
  return TextAt(node, json::json_pointer("/metadata/annotations") / key);
}

std::string OwnedText(const StringMap& resources) {
  std::string text;
  for (const auto& [name, amount] : resources) {
    text += (text.empty() ? "" : ",") + name;
  }
  return text;
}

/// Adds one annotation to `patch` if it differs. An empty `value` removes the annotation.
void PatchAnnotation(const json& node, const char* key, const std::string& value, json& patch) {
  if (AnnotationOf(node, key) != value) {
    patch["metadata"]["annotations"][key] = value.empty() ? json() : json(value);
  }
}

/// Whether a container that asks for the class gets it now.
bool IsOnOffer(const OfferedType& offered, const sdk::ClassInfo& info) {
  return offered.type.problem.empty() && info.problem.empty();
}

json ClassEntry(const OfferedType& offered) {
  json classes = json::array();
  json capacities = json::object();
  json namespaces = json::object();
  for (const sdk::ClassInfo& info : offered.type.classes) {
    if (!IsOnOffer(offered, info)) {
      continue;
    }
    classes.push_back(info.name);
    if (const uint64_t capacity = offered.CapacityOf(info); capacity != 0) {
      capacities[info.name] = capacity;
    }
    if (const auto rule = offered.rules->classes.find(info.name);
        rule != offered.rules->classes.end() && rule->second.HasRightsOfApiServer()) {
      namespaces[info.name] = {"*"};
    } else if (rule != offered.rules->classes.end() && !rule->second.namespaces.empty()) {
      namespaces[info.name] = rule->second.namespaces;
    }
  }
  json entry = {{"name", offered.type.name},
                {"classes", std::move(classes)},
                {"immutable", !offered.type.is_mutable}};
  if (!capacities.empty()) {
    entry["capacity"] = std::move(capacities);
  }
  if (!namespaces.empty()) {
    entry["namespaces"] = std::move(namespaces);
  }
  return entry;
}

/// The rules about what `names` has, in their order.
json RulesEntry(const placement::Permissions& permissions, const char* key,
                std::vector<std::string> placement::PermissionRule::* names) {
  json rules = json::array();
  for (const placement::PermissionRule& rule : permissions.rules()) {
    rules.push_back({{"namespaces", rule.namespaces}, {key, rule.*names}});
  }
  return rules;
}

}  // namespace

StringMap ExtendedResourcesOf(const AllocatableByResource& allocatable) {
  StringMap resources;
  for (const auto& [name, resource] : allocatable) {
    if (resource.is_node_resource && resource.is_scalar_resource && IsExtendedResource(name)) {
      resources[name] = fmt::format("{}", std::llround(std::floor(resource.allocatable)));
    }
  }
  return resources;
}

StringMap ClassResourcesOf(const OfferedTypes& types) {
  StringMap resources;
  for (const OfferedType& offered : types) {
    const std::string domain =
        offered.type.name + (IsPluginType(offered.type.name) ? "" : ".qrm.io");
    for (const sdk::ClassInfo& info : offered.type.classes) {
      const std::string name = domain + "/" + info.name;
      const uint64_t capacity = offered.CapacityOf(info);
      if (capacity != 0 && IsOnOffer(offered, info) && IsExtendedResource(name)) {
        resources[name] = fmt::format("{}", capacity);
      }
    }
  }
  return resources;
}

std::string ClassesText(const OfferedTypes& types, const placement::Permissions& permissions) {
  json of_pods = json::array();
  json of_containers = json::array();
  for (const OfferedType& offered : types) {
    (offered.type.level == sdk::ClassLevel::kPod ? of_pods : of_containers)
        .push_back(ClassEntry(offered));
  }
  const json lists = {
      {"podClassResources", std::move(of_pods)},
      {"containerClassResources", std::move(of_containers)},
      {"permissions", RulesEntry(permissions, "classes", &placement::PermissionRule::classes)}};
  return lists.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string PodClassesText(const checkpoint::PodRecord& pod, const OfferedTypes& types,
                           const ClassProblems& problems_of) {
  json text;
  for (const auto& [container, record] : pod.containers) {
    for (const auto& [type, name] : record->classes) {
      const OfferedType* const offered = FindType(types, type);
      const bool of_pod = offered != nullptr && offered->type.level == sdk::ClassLevel::kPod;
      if (!name.empty()) {
        (of_pod ? text["pod"] : text["containers"][container])[type] = name;
      }
    }
    for (const std::string& problem : problems_of({pod.meta.uid, container})) {
      text["problems"][container].push_back(problem);
    }
  }
  return text.is_null() ? "" : text.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string DriversText(const std::vector<PluginInfo>& plugins,
                        const placement::DriverOptions& rules,
                        const placement::Permissions& permissions) {
  json drivers = json::object();
  for (const auto& [name, of] : rules) {
    const bool falls_back = of.when_missing == placement::WhenMissing::kFallBack;
    drivers[name] = {{"state", falls_back ? "fallback" : "not running"},
                     {"namespaces", of.namespaces}};
  }
  for (const PluginInfo& plugin : plugins) {
    if (!sdk::IsDriverResource(plugin.resource)) {
      continue;
    }
    json& driver = drivers
                       .emplace(sdk::DriverNameOf(plugin.resource),
                                json({{"state", "not running"}, {"namespaces", json::array()}}))
                       .first.value();
    if (plugin.live) {
      driver["state"] = "ready";
    }
  }
  const json text = {
      {"drivers", std::move(drivers)},
      {"permissions", RulesEntry(permissions, "drivers", &placement::PermissionRule::drivers)}};
  return text.dump(-1, ' ', false, json::error_handler_t::replace);
}

StringMap OwnedResources(const json& node) {
  StringMap owned;
  std::istringstream names(AnnotationOf(node, kOwnedAnnotation));
  for (std::string name; std::getline(names, name, ',');) {
    if (IsExtendedResource(name)) {
      owned[name] = AmountIn(node, "capacity", name);
    }
  }
  return owned;
}

void KnownResources::Recall(const StringMap& amounts, Time now) {
  for (const auto& [name, text] : amounts) {
    const double amount = ParseQuantity(text).value_or(0);
    known_.emplace(name, Known{.resource = {.is_node_resource = true,
                                            .is_scalar_resource = true,
                                            .allocatable = amount,
                                            .capacity = amount},
                               .told_at = now});
  }
}

AllocatableByResource KnownResources::Join(const AllocatableByResource& told, Time now) {
  for (const auto& [name, resource] : told) {
    known_.insert_or_assign(name, Known{.resource = resource, .told_at = now});
  }
  AllocatableByResource joined;
  for (auto entry = known_.begin(); entry != known_.end();) {
    if (now - entry->second.told_at > grace_) {
      entry = known_.erase(entry);
    } else {
      joined.emplace(entry->first, entry->second.resource);
      ++entry;
    }
  }
  return joined;
}

std::optional<json> NodePatch(const json& node, const NodeWishes& wishes) {
  json patch = json::object();
  for (const char* list : {"capacity", "allocatable"}) {
    for (const auto& [name, amount] : wishes.extended_resources) {
      if (!Says(node, list, name, amount)) {
        patch["status"][list][name] = amount;
      }
    }
    for (const auto& [name, amount] : OwnedResources(node)) {
      if (!wishes.extended_resources.contains(name) && !AmountIn(node, list, name).empty()) {
        patch["status"][list][name] = nullptr;
      }
    }
  }
  PatchAnnotation(node, kOwnedAnnotation, OwnedText(wishes.extended_resources), patch);
  PatchAnnotation(node, kClassesAnnotation, wishes.classes.value_or(std::string()), patch);
  PatchAnnotation(node, kConfigAnnotation, wishes.config.value_or(std::string()), patch);
  PatchAnnotation(node, kDriversAnnotation, wishes.drivers.value_or(std::string()), patch);
  PatchAnnotation(node, kPublishedAnnotation, wishes.published_at, patch);
  return patch.empty() ? std::nullopt : std::optional(std::move(patch));
}

}  // namespace qrm::manager
