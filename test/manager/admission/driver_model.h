// The parts of a model of compute drivers: what may be given, a driver that sometimes breaks the
// rules, and the allocations of each container.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/id_set.h"
#include "manager/registry/plugins.h"
#include "plugins/sdk/compute_driver.h"
#include "plugins/sdk/plugin_driver.h"
#include "plugins/sdk/plugin_state.h"
#include "test/support/is_ok.h"
#include "topology/merge.h"

namespace qrm::test {

using Random = std::mt19937;

inline int Pick(Random& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

/// What a driver gave to one container.
struct Given {
  sdk::ComputePart own;                    ///< no CPUs: it rejected
  std::optional<sdk::ComputePart> shared;  ///< of the default pool; one without CPUs: all of it

  CpuSet All() const { return own.cpus | own.idle; }
  /// The CPUs that the container uses besides its exclusive ones, while `free` is not exclusive.
  CpuSet SharedOf(const CpuSet& free) const {
    return !shared.has_value()    ? CpuSet()
           : shared->cpus.Empty() ? free - All()
                                  : (free & shared->cpus) - All();
  }
};

/// The latest request to a driver, and its answer.
struct Asked {
  CpuSet offered;
  NumaMask near;
  Given gave;
};

/// Gives random CPUs of the offer, and now and then other ones; does not always release them.
class RandomDriver final : public sdk::ComputeDriver {
 public:
  explicit RandomDriver(Random& random) : random_(random) {}

  StatusOr<sdk::ComputeGrant> Admit(const sdk::ComputeRequest& request) override {
    QRM_ASSIGN_OR_RETURN(const Given gave, Decide(request));
    holds_[request.key] = gave;
    return GrantOf(gave);
  }
  bool Resizes() const override { return true; }
  /// What it gives counts once it is restored with it.
  StatusOr<sdk::ComputeGrant> Resize(const sdk::ComputeRequest& request,
                                     const sdk::ComputeGrant& /*now*/) override {
    QRM_ASSIGN_OR_RETURN(const Given gave, Decide(request));
    return GrantOf(gave);
  }
  Status Restore(const sdk::ComputeGrants& grants) override {
    holds_.clear();
    for (const auto& [key, grant] : grants) {
      Given& given = holds_[key];
      for (const sdk::ComputePart& part : grant.parts) {
        if (part.shared) {
          given.shared = part;
        } else {
          given.own = part;
        }
      }
    }
    return OkStatus();
  }
  Status Remove(const ContainerKey& key) override {
    if (Pick(random_, 0, 9) == 0) {
      clings_ = true;
      return {StatusCode::kUnavailable, "not now"};
    }
    holds_.erase(key);
    return OkStatus();
  }

  /// The requests since the latest call of this.
  std::optional<Asked> TakeAsked() { return std::exchange(asked_, std::nullopt); }
  /// Whether it kept something that it was to release since the latest call of this.
  bool TakeClings() { return std::exchange(clings_, false); }
  /// What it gave and has not released; none otherwise.
  std::optional<Given> Holds(const ContainerKey& key) const {
    const auto held = holds_.find(key);
    return held == holds_.end() ? std::nullopt : std::optional(held->second);
  }

 private:
  StatusOr<Given> Decide(const sdk::ComputeRequest& request) {
    Asked& asked =
        asked_.emplace(Asked{.offered = request.available, .near = request.hint.nodes, .gave = {}});
    if (Pick(random_, 0, 9) == 0) {
      return Errorf(StatusCode::kFailedPrecondition, "not today");
    }
    asked.gave = Choose(request);
    return asked.gave;
  }
  static sdk::ComputeGrant GrantOf(const Given& gave) {
    sdk::ComputeGrant grant{.parts = {gave.own}};
    if (gave.shared.has_value()) {
      grant.parts.push_back(*gave.shared);
    }
    return grant;
  }
  Given Choose(const sdk::ComputeRequest& request) {
    const bool wrong = Pick(random_, 0, 9) == 0;
    std::vector<int> choice;
    for (const int cpu : wrong ? CpuSet::Range(0, 15) : request.available) {
      choice.push_back(cpu);
    }
    std::shuffle(choice.begin(), choice.end(), random_);
    Given given;
    for (const int cpu : choice) {
      if (given.All().Count() * int64_t{1000} < request.milli_cpus) {
        const bool idle = !given.own.cpus.Empty() && Pick(random_, 0, 3) == 0;
        (idle ? given.own.idle : given.own.cpus).Add(cpu);
      }
    }
    if (Pick(random_, 0, 2) == 0) {
      sdk::ComputePart& shared = given.shared.emplace(sdk::ComputePart{.shared = true});
      for (const int cpu : (wrong ? CpuSet::Range(0, 15) : request.shared) - given.All()) {
        if (Pick(random_, 0, 3) == 0) {
          shared.cpus.Add(cpu);
        }
      }
    }
    return given;
  }

  Random& random_;
  std::optional<Asked> asked_;
  bool clings_ = false;
  std::map<ContainerKey, Given> holds_;
};

/// Plugins inside this process.
class ServedPlugins final : public manager::Plugins {
 public:
  void Add(const std::string& resource, sdk::ResourcePlugin& plugin) {
    auto started = manager::LocalPlugin::Start(plugin, resource, sdk::MakeMemoryState());
    EXPECT_TRUE(IsOk(started.status()));
    plugins_[resource] = *std::move(started);
  }

  std::vector<manager::PluginInfo> List() const override {
    std::vector<manager::PluginInfo> infos;
    infos.reserve(plugins_.size());
    for (const auto& [resource, plugin] : plugins_) {
      infos.push_back({.resource = resource, .options = plugin->options(), .live = true});
    }
    return infos;
  }
  std::optional<manager::PluginInfo> Find(const std::string& resource) const override {
    const manager::LocalPlugin* const plugin = Local(resource);
    return plugin == nullptr
               ? std::nullopt
               : std::optional(manager::PluginInfo{
                     .resource = resource, .options = plugin->options(), .live = true});
  }
  void MarkSuspect(const std::string& /*resource*/, const std::string& /*problem*/) override {}
  void Forget(const std::string& /*resource*/) override {}
  manager::LocalPlugin* Local(const std::string& resource) const override {
    const auto found = plugins_.find(resource);
    return found == plugins_.end() ? nullptr : found->second.get();
  }

 private:
  void Start(const std::string& resource, std::shared_ptr<calls::Call> call,
             Deadline /*deadline*/) override {
    call->Fail(Status(StatusCode::kNotFound, "no plugin of " + resource), calls::Blame::kRefusal);
  }

  std::map<std::string, std::unique_ptr<manager::LocalPlugin>> plugins_;
};

/// The owners of sixteen CPUs on two nodes, by the rules: 0 is reserved, 1 and 2 are a pool, and at
/// least one other CPU is left for containers that share.
class Ledger {
 public:
  explicit Ledger(TopologyPolicy policy)
      : strict_(policy == TopologyPolicy::kRestricted ||
                policy == TopologyPolicy::kSingleNumaNode) {}

  CpuSet Free() const {
    CpuSet free = CpuSet::Range(3, 15);
    for (const auto& [name, cpus] : held_) {
      free -= cpus;
    }
    return free;
  }
  /// Whether so many CPUs are free where the policy wants them, beside the container's `own`.
  bool Fits(int cpus, const CpuSet& own = {}) const {
    const CpuSet free = Free() | own;
    if (!strict_) {
      return free.Count() >= cpus;
    }
    return std::any_of(kNodes.begin(), kNodes.end(),
                       [&](const CpuSet& node) { return (free & node).Count() >= cpus; });
  }
  bool LeavesOne(int cpus) const { return Free().Count() > cpus; }
  /// The CPUs that a driver is offered for a container that is to be near `nodes`, and has `own`.
  CpuSet Offer(const NumaMask& nodes, const CpuSet& own = {}) const {
    CpuSet near;
    for (const int node : nodes) {
      near |= kNodes.at(static_cast<std::size_t>(node));
    }
    return strict_ ? (Free() | own) & near : Free() | own;
  }
  bool MayGive(const Given& given, const CpuSet& offer, int cpus, const CpuSet& own = {}) const {
    const CpuSet all = given.All();
    const bool may_share = !given.shared.has_value() || given.shared->cpus.IsSubsetOf(Free() | own);
    return !given.own.cpus.Empty() && all.Count() <= cpus && all.IsSubsetOf(offer) && may_share &&
           !((Free() | own) - all).Empty();
  }

  void Hold(const std::string& name, const CpuSet& cpus) { held_[name] = cpus; }
  void Release(const std::string& name) { held_.erase(name); }
  const std::map<std::string, CpuSet>& held() const { return held_; }

 private:
  inline static const std::vector<CpuSet> kNodes = {CpuSet::Range(0, 7), CpuSet::Range(8, 15)};

  const bool strict_;
  std::map<std::string, CpuSet> held_;  // by pod; with what is to be idle
};

}  // namespace qrm::test
