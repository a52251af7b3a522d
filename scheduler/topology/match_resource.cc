// Joins the amounts in the node's topology object with the names in its allocatable.
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "scheduler/cache/read_objects.h"
#include "scheduler/topology/match_rules.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler {
namespace {

class MatchResource final : public ExtendedResource {
 public:
  explicit MatchResource(MatchNode node) : node_(std::move(node)) {}

  void AddPod(const Pod& /*pod*/) override {}
  void RemovePod(const Pod& /*pod*/) override {}
  Admission AdmitPod(const Pod& pod) const override {
    return {.refusal = MatchRefusal(node_, pod)};
  }
  std::unique_ptr<ExtendedResource> Clone() const override {
    return std::make_unique<MatchResource>(*this);
  }
  nlohmann::json Dump() const override {
    nlohmann::json zones = nlohmann::json::object();
    for (const auto& [id, available] : node_.zones) {
      zones["node-" + std::to_string(id)] = available;
    }
    return {{"zones", zones}, {"aligned", node_.single_numa_node}};
  }

 private:
  MatchNode node_;
};

class MatchHandle final : public Handle {
 public:
  Status Run(ExtendedCache& cache, Feed& feed) override {
    feed.Subscribe(
        kTopologies, [](const nlohmann::json& body) { return TextAt(body, "/metadata/name"); },
        [this, &cache](const std::string& node, const nlohmann::json* body) {
          Parts& parts = parts_[node];
          parts.told = body == nullptr ? std::nullopt : std::optional(ReadMatchNode(*body));
          Tell(cache, node);
        });
    feed.SubscribeNodes([this, &cache](const std::string& name, const Node* node) {
      std::set<std::string> names;
      if (node != nullptr) {
        for (const auto& [resource, amount] : node->allocatable) {
          names.insert(resource);
        }
      }
      if (Parts& parts = parts_[name]; parts.allocatable != names) {
        parts.allocatable = std::move(names);
        Tell(cache, name);
      }
    });
    return OkStatus();
  }

  // A node without such an object takes every pod.
  bool Wants(const Pod& /*pod*/) const override { return false; }

 private:
  struct Parts {
    std::optional<MatchNode> told;
    std::set<std::string> allocatable;
  };

  void Tell(ExtendedCache& cache, const std::string& node) {
    const auto parts = parts_.find(node);
    const std::optional<MatchNode>& told = parts->second.told;
    if (!told.has_value()) {
      cache.SetExtendedResource(node, nullptr);
      if (parts->second.allocatable.empty()) {
        parts_.erase(parts);
      }
      return;
    }
    MatchNode joined = *told;
    joined.allocatable = parts->second.allocatable;
    cache.SetExtendedResource(node, std::make_shared<MatchResource>(std::move(joined)));
  }

  std::map<std::string, Parts> parts_;  // by node
};

}  // namespace

std::unique_ptr<Handle> MakeMatchHandle() {
  return std::make_unique<MatchHandle>();
}

}  // namespace qrm::scheduler
