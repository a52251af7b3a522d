// Compares the drivers that a pod names with those that its node offers to its namespace.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/pod_texts.h"
#include "scheduler/topology/driver_offer.h"
#include "scheduler/topology/node_texts.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;

using DriverOfferPtr = std::shared_ptr<const DriverOffer>;

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
      if (!offer_->MayAsk(pod.pod_namespace, name, driver->second)) {
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
    offers_.Follow(feed, kNodeDrivers, ReadDriverOffer,
                   [&cache](const std::string& node, const DriverOfferPtr& offer) {
                     cache.SetExtendedResource(node, offer == nullptr
                                                         ? nullptr
                                                         : std::make_shared<DriverResource>(offer));
                   });
    return OkStatus();
  }

  bool IsPublishedByNode() const override { return true; }

  bool Wants(const Pod& pod) const override {
    return std::any_of(pod.annotations.begin(), pod.annotations.end(), NamesDriver);
  }

 private:
  NodeTexts<DriverOffer> offers_;
};

}  // namespace

std::unique_ptr<Handle> MakeDriversHandle() {
  return std::make_unique<DriversHandle>();
}

}  // namespace qrm::scheduler
