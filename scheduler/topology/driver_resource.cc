// Compares the drivers that a pod names with those that its node reports.
#include "scheduler/topology/driver_resource.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/foreign_json.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;

/// Of an annotation: more drivers than a node has.
constexpr JsonBounds kBounds{.depth = 2, .values = 1000};
constexpr char kPodDriver[] = "cci.qrm.io/driver";
constexpr char kContainerDriver[] = "driver.cci.qrm.io/container.";

bool NamesDriver(const StringMap::value_type& annotation) {
  return !annotation.second.empty() &&
         (annotation.first == kPodDriver || annotation.first.starts_with(kContainerDriver));
}

class DriverResource final : public ExtendedResource {
 public:
  explicit DriverResource(json states) : states_(std::move(states)) {}

  void AddPod(const Pod& /*pod*/) override {}
  void RemovePod(const Pod& /*pod*/) override {}
  Admission AdmitPod(const Pod& pod) const override {
    for (const auto& annotation : pod.annotations) {
      if (!NamesDriver(annotation)) {
        continue;
      }
      const auto state = states_.find(annotation.second);
      if (state == states_.end()) {
        return {.refusal = "the node does not have its compute driver"};
      }
      if (*state == "not running") {
        return {.refusal = "its compute driver is not running on the node"};
      }
    }
    return {};
  }
  std::unique_ptr<ExtendedResource> Clone() const override {
    return std::make_unique<DriverResource>(*this);
  }
  json Dump() const override { return states_; }

 private:
  json states_;  // by driver
};

class DriversHandle final : public Handle {
 public:
  Status Run(ExtendedCache& cache, Feed& feed) override {
    feed.ReadAnnotations(kPodDriver);
    feed.ReadAnnotations(std::string(kContainerDriver) + "*");
    feed.SubscribeNodes([this, &cache](const std::string& name, const Node* node) {
      std::string text;
      if (node != nullptr && node->annotations.contains(kNodeDrivers)) {
        text = node->annotations.at(kNodeDrivers);
      }
      if (text != std::exchange(texts_[name], text)) {
        StatusOr<json> states = ParseJson(text, kBounds);
        const bool is_read = states.ok() && states->is_object();
        cache.SetExtendedResource(
            name, is_read ? std::make_shared<DriverResource>(*std::move(states)) : nullptr);
      }
      if (text.empty()) {
        texts_.erase(name);
      }
    });
    return OkStatus();
  }

  bool Wants(const Pod& pod) const override {
    return std::any_of(pod.annotations.begin(), pod.annotations.end(), NamesDriver);
  }

 private:
  std::map<std::string, std::string> texts_;  // by node
};

}  // namespace

std::unique_ptr<Handle> MakeDriversHandle() {
  return std::make_unique<DriversHandle>();
}

}  // namespace qrm::scheduler
