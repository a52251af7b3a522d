// Drives a plugin as the SDK and the manager do, without sockets or disk.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/base/status.h"
#include "plugins/sdk/plugin.h"

namespace qrm::test {

/// One plugin, its grants, and a manager that takes the first preferred hint, else the first hint.
class Drive {
 public:
  explicit Drive(std::unique_ptr<sdk::ResourcePlugin> plugin) : plugin_(std::move(plugin)) {}

  /// `plugin` as a restart of `before`.
  Drive(std::unique_ptr<sdk::ResourcePlugin> plugin, const Drive& before)
      : plugin_(std::move(plugin)), grants_(before.grants_) {
    EXPECT_TRUE(plugin_->LoadState(before.plugin_->SaveState()).ok());
    EXPECT_TRUE(plugin_->Restore(grants_).ok());
  }

  StatusOr<ResourceAllocation> Admit(const ContainerRequest& request) {
    QRM_ASSIGN_OR_RETURN(const HintList hints, plugin_->Hints(request));
    if (hints.IsImpossible()) {
      return Status(StatusCode::kResourceExhausted, "no hint");
    }
    const TopologyHint hint = Chosen(hints.hints());
    QRM_ASSIGN_OR_RETURN(ResourceAllocation allocation, plugin_->Allocate(request, hint));
    grants_[request.key] = {.request = request, .allocation = allocation};
    return allocation;
  }

  /// Records a grant that the test got directly from `plugin()`.
  void Keep(const ContainerRequest& request, const StatusOr<ResourceAllocation>& given) {
    ASSERT_TRUE(given.ok()) << given.status();
    grants_[request.key] = {.request = request, .allocation = *given};
  }

  void RemovePod(const std::string& pod) {
    std::vector<ContainerKey> keys;
    for (const auto& [key, grant] : grants_) {
      if (grant.request.pod_name == pod) {
        keys.push_back(key);
      }
    }
    plugin_->Remove(keys);
    for (const ContainerKey& key : keys) {
      grants_.erase(key);
    }
  }

  void Reconcile() {
    const auto current = plugin_->Reconcile(grants_);
    ASSERT_TRUE(current.ok()) << current.status();
    for (const auto& [key, allocation] : *current) {
      grants_.at(key).allocation = allocation;
    }
  }

  /// The allocation of container c0 of `pod`.
  const ResourceAllocation& Of(const std::string& pod) const {
    return grants_.at({.pod_uid = pod + "-uid", .container = "c0"}).allocation;
  }
  std::string Value(const std::string& pod) const { return Of(pod).value; }
  double Quantity(const std::string& pod) const { return Of(pod).quantity; }

  sdk::ResourcePlugin& plugin() { return *plugin_; }
  const sdk::ResourcePlugin& plugin() const { return *plugin_; }
  const sdk::Grants& grants() const { return grants_; }

 private:
  static TopologyHint Chosen(const std::vector<TopologyHint>& hints) {
    const auto preferred = std::find_if(hints.begin(), hints.end(),
                                        [](const TopologyHint& hint) { return hint.preferred; });
    return preferred != hints.end() ? *preferred : hints.empty() ? TopologyHint() : hints.front();
  }

  std::unique_ptr<sdk::ResourcePlugin> plugin_;
  sdk::Grants grants_;
};

}  // namespace qrm::test
