// Compares versions, because a watch may report a write later than the write's answer.
#include "manager/publish/object_mirror.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "api/resource_version.h"

namespace qrm::manager {
namespace {

std::string VersionOf(const nlohmann::json& object) {
  const nlohmann::json::json_pointer path("/metadata/resourceVersion");
  return object.contains(path) && object[path].is_string() ? object[path].get<std::string>()
                                                           : std::string();
}

}  // namespace

ObjectMirror::ObjectMirror(std::function<void()> on_change)
    : on_change_(std::move(on_change)),
      object_(std::make_unique<nlohmann::json>()),
      listed_(std::make_unique<nlohmann::json>()) {}

ObjectMirror::~ObjectMirror() = default;

void ObjectMirror::OnListBegin() {
  *listed_ = nullptr;
}

void ObjectMirror::OnItem(const nlohmann::json& object) {
  *listed_ = object.is_object() ? object : nullptr;
}

void ObjectMirror::Take(const nlohmann::json& object) {
  if (CompareVersions(VersionOf(object), VersionOf(*object_)) > 0) {
    *object_ = object;
  }
}

void ObjectMirror::OnListEnd(const std::string& /*version*/) {
  known_ = true;
  *object_ = std::exchange(*listed_, nullptr);
  on_change_();
}

void ObjectMirror::OnSet(const nlohmann::json& object) {
  Take(object);
  on_change_();
}

void ObjectMirror::OnDelete(const nlohmann::json& last_state) {
  if (CompareVersions(VersionOf(last_state), VersionOf(*object_)) >= 0) {
    *object_ = nullptr;
  }
  on_change_();
}

}  // namespace qrm::manager
