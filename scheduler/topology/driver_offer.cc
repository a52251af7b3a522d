// Reads and asks the rules.
#include "scheduler/topology/driver_offer.h"

#include <nlohmann/json.hpp>

#include "api/base/foreign_json.h"
#include "api/base/glob.h"
#include "scheduler/topology/published_annotation.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;

/// More drivers and rules than a node has.
constexpr JsonBounds kBounds{.depth = 5, .values = 4'000};

/// {DRIVER: STATE}, of a qrmd that does not publish who may ask. Throws what the JSON library
/// throws.
void ReadStates(const json& states, DriverOffer& offer) {
  for (const auto& [name, state] : states.get<std::map<std::string, std::string>>()) {
    offer.drivers[name] = {.state = state, .namespaces = {"*"}};
  }
}

/// Throws what the JSON library throws.
void ReadDrivers(const json& lists, DriverOffer& offer) {
  const auto rules = lists.find("permissions");
  if (rules == lists.end() || !rules->is_array()) {
    ReadStates(lists, offer);
    return;
  }
  offer.permissions = ReadPermissions(*rules);
  for (const auto& [name, driver] : lists.at("drivers").items()) {
    offer.drivers[name] = {.state = driver.at("state"), .namespaces = driver.at("namespaces")};
  }
}

}  // namespace

bool DriverOffer::MayAsk(const std::string& pod_namespace, const std::string& name,
                         const OfferedDriver& offered) const {
  return MatchesAnyGlob(offered.namespaces, pod_namespace) ||
         permissions.Allows(pod_namespace, {.feature = placement::Feature::kDriver, .name = name});
}

StatusOr<DriverOffer> ReadDriverOffer(const std::string& text) {
  DriverOffer offer;
  QRM_RETURN_IF_ERROR(ReadAnnotation(kNodeDrivers, text, kBounds,
                                     [&](const json& lists) { ReadDrivers(lists, offer); }));
  return offer;
}

}  // namespace qrm::scheduler
