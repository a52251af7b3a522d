// Reads and asks the rules.
#include "scheduler/topology/class_offer.h"

#include <nlohmann/json.hpp>

#include "api/base/glob.h"
#include "scheduler/topology/published_annotation.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;

OfferedClassType ReadType(const json& entry, sdk::ClassLevel level) {
  OfferedClassType type{.type = {.name = entry.at("name"), .level = level}};
  for (const json& name : entry.at("classes")) {
    type.classes[name];
  }
  const json capacities = entry.value("capacity", json::object());
  for (const auto& [name, capacity] : capacities.items()) {
    type.classes[name].capacity = capacity;
  }
  const json of_classes = entry.value("namespaces", json::object());
  for (const auto& [name, namespaces] : of_classes.items()) {
    type.classes[name].namespaces = namespaces;
  }
  return type;
}

/// Throws what the JSON library throws.
void ReadTypes(const json& lists, ClassOffer& offer) {
  for (const json& entry : lists.at("podClassResources")) {
    offer.types.push_back(ReadType(entry, sdk::ClassLevel::kPod));
  }
  for (const json& entry : lists.at("containerClassResources")) {
    offer.types.push_back(ReadType(entry, sdk::ClassLevel::kContainer));
  }
  offer.permissions = ReadPermissions(lists.at("permissions"));
}

}  // namespace

bool ClassOffer::MayAsk(const std::string& pod_namespace, const std::string& type,
                        const std::string& name, const OfferedClass& offered) const {
  const placement::Wish wish{.feature = placement::Feature::kClass, .name = type + "/" + name};
  return MatchesAnyGlob(offered.namespaces, pod_namespace) ||
         permissions.Allows(pod_namespace, wish);
}

StatusOr<ClassOffer> ReadClassOffer(const std::string& text) {
  ClassOffer offer;
  QRM_RETURN_IF_ERROR(
      ReadAnnotation(kNodeClasses, text, {}, [&](const json& lists) { ReadTypes(lists, offer); }));
  return offer;
}

}  // namespace qrm::scheduler
