// Compares the drivers that a pod names with those that its node reports.
#include <algorithm>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/foreign_json.h"
#include "api/pod_texts.h"
#include "scheduler/topology/node_texts.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;

/// Of an annotation: more drivers than a node has.
constexpr JsonBounds kBounds{.depth = 2, .values = 1000};

bool NamesDriver(const StringMap::value_type& annotation) {
  return !annotation.second.empty() &&
         (annotation.first == kPodDriver || annotation.first.starts_with(kContainerDriver));
}

class DriverResource final : public ExtendedResource {
 public:
  explicit DriverResource(std::shared_ptr<const json> states) : states_(std::move(states)) {}

  void AddPod(const Pod& /*pod*/) override {}
  void RemovePod(const Pod& /*pod*/) override {}
  Admission AdmitPod(const Pod& pod) const override {
    for (const auto& annotation : pod.annotations) {
      if (!NamesDriver(annotation)) {
        continue;
      }
      const auto state = states_->find(annotation.second);
      if (state == states_->end()) {
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
  json Dump() const override { return *states_; }

 private:
  std::shared_ptr<const json> states_;  // by driver
};

class DriversHandle final : public Handle {
 public:
  Status Run(ExtendedCache& cache, Feed& feed) override {
    feed.ReadAnnotations(kPodDriver);
    feed.ReadAnnotations(std::string(kContainerDriver) + "*");
    states_.Follow(
        feed, kNodeDrivers,
        [](const std::string& /*node*/, const std::string& text) {
          StatusOr<json> states = ParseJson(text, kBounds);
          const bool is_read = states.ok() && states->is_object();
          return is_read ? std::make_shared<const json>(*std::move(states)) : nullptr;
        },
        [&cache](const std::string& node, const std::shared_ptr<const json>& states) {
          cache.SetExtendedResource(
              node, states == nullptr ? nullptr : std::make_shared<DriverResource>(states));
        });
    return OkStatus();
  }

  bool IsPublishedByNode() const override { return true; }

  bool Wants(const Pod& pod) const override {
    return std::any_of(pod.annotations.begin(), pod.annotations.end(), NamesDriver);
  }

 private:
  NodeTexts<const json> states_;
};

}  // namespace

std::unique_ptr<Handle> MakeDriversHandle() {
  return std::make_unique<DriversHandle>();
}

}  // namespace qrm::scheduler
