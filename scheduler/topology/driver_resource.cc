// Compares the drivers that a pod names with those that its node offers to its namespace.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/base/foreign_json.h"
#include "api/base/glob.h"
#include "api/pod_texts.h"
#include "plugins/placement/permissions.h"
#include "scheduler/topology/node_texts.h"
#include "scheduler/topology/published_permissions.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;

/// Of an annotation: more drivers and rules than a node has.
constexpr JsonBounds kBounds{.depth = 5, .values = 4'000};

struct OfferedDriver {
  std::string state;                    ///< "ready", "not running" or "fallback"
  std::vector<std::string> namespaces;  ///< globs: those may ask for it, whatever permissions say
};

struct DriverOffer {
  std::map<std::string, OfferedDriver> drivers;  ///< by name
  placement::Permissions permissions;            ///< about drivers only
};
using DriverOfferPtr = std::shared_ptr<const DriverOffer>;

/// Of a qrmd that does not publish who may ask: {DRIVER: STATE}. Throws what the JSON library
/// throws.
DriverOffer ReadStates(const json& states) {
  DriverOffer offer;
  for (const auto& [name, state] : states.items()) {
    offer.drivers[name] = {.state = state, .namespaces = {"*"}};
  }
  return offer;
}

/// Throws what the JSON library throws.
DriverOffer ReadDrivers(const json& text) {
  const auto rules = text.find("permissions");
  if (rules == text.end() || !rules->is_array()) {
    return ReadStates(text);
  }
  DriverOffer offer{.permissions = ReadPermissions(*rules)};
  for (const auto& [name, driver] : text.at("drivers").items()) {
    offer.drivers[name] = {.state = driver.at("state"), .namespaces = driver.at("namespaces")};
  }
  return offer;
}

/// Null when it has not the form that qrmd writes.
DriverOfferPtr ReadOffer(const std::string& text) {
  const StatusOr<json> read = ParseJson(text, kBounds);
  if (!read.ok() || !read->is_object()) {
    return nullptr;
  }
  try {
    return std::make_shared<const DriverOffer>(ReadDrivers(*read));
  } catch (const json::exception&) {
    return nullptr;
  }
}

bool NamesDriver(const StringMap::value_type& annotation) {
  return !annotation.second.empty() &&
         (annotation.first == kPodDriver || annotation.first.starts_with(kContainerDriver));
}

class DriverResource final : public ExtendedResource {
 public:
  explicit DriverResource(DriverOfferPtr offer) : offer_(std::move(offer)) {}

  void AddPod(const Pod& /*pod*/) override {}
  void RemovePod(const Pod& /*pod*/) override {}
  Admission AdmitPod(const Pod& pod) const override {
    for (const auto& annotation : pod.annotations) {
      if (!NamesDriver(annotation)) {
        continue;
      }
      const std::string& name = annotation.second;
      const auto driver = offer_->drivers.find(name);
      if (driver == offer_->drivers.end()) {
        return {.refusal = "the node does not have its compute driver"};
      }
      if (driver->second.state == "not running") {
        return {.refusal = "its compute driver is not running on the node"};
      }
      const placement::Wish wish{.feature = placement::Feature::kDriver, .name = name};
      if (!MatchesAnyGlob(driver->second.namespaces, pod.pod_namespace) &&
          !offer_->permissions.Allows(pod.pod_namespace, wish)) {
        return {.refusal = "its namespace may not ask for that compute driver there"};
      }
    }
    return {};
  }
  std::unique_ptr<ExtendedResource> Clone() const override {
    return std::make_unique<DriverResource>(*this);
  }
  json Dump() const override {
    json states = json::object();
    for (const auto& [name, driver] : offer_->drivers) {
      states[name] = driver.state;
    }
    return states;
  }

 private:
  DriverOfferPtr offer_;
};

class DriversHandle final : public Handle {
 public:
  Status Run(ExtendedCache& cache, Feed& feed) override {
    feed.ReadAnnotations(kPodDriver);
    feed.ReadAnnotations(std::string(kContainerDriver) + "*");
    offers_.Follow(
        feed, kNodeDrivers,
        [](const std::string& /*node*/, const std::string& text) { return ReadOffer(text); },
        [&cache](const std::string& node, const DriverOfferPtr& offer) {
          cache.SetExtendedResource(
              node, offer == nullptr ? nullptr : std::make_shared<DriverResource>(offer));
        });
    return OkStatus();
  }

  bool IsPublishedByNode() const override { return true; }

  bool Wants(const Pod& pod) const override {
    return std::any_of(pod.annotations.begin(), pod.annotations.end(), NamesDriver);
  }

 private:
  NodeTexts<const DriverOffer> offers_;
};

}  // namespace

std::unique_ptr<Handle> MakeDriversHandle() {
  return std::make_unique<DriversHandle>();
}

}  // namespace qrm::scheduler
