// Keeps the cpu plugin's state between the policy's decisions.
#include "plugins/cpu/cpu_plugin.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/base/log.h"
#include "plugins/cpu/advisors.h"
#include "plugins/cpu/allocations.h"
#include "plugins/cpu/classes.h"
#include "plugins/cpu/config/classify.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/elastic.h"
#include "plugins/cpu/export_json.h"
#include "plugins/cpu/fit_config.h"
#include "plugins/cpu/plan_memo.h"
#include "plugins/cpu/policy.h"
#include "plugins/cpu/pools.h"
#include "plugins/cpu/state.h"
#include "plugins/cpu/usage.h"
#include "plugins/kernel/host_tuner.h"
#include "plugins/kernel/interrupts.h"
#include "plugins/kernel/kernel_files.h"

namespace qrm::cpu {
namespace {

/// In the state directory: the machine's values from before classes of CPUs.
constexpr char kJournal[] = "/cpu_classes.knobs.json";
/// Pools give CPUs up at most once in this time.
constexpr std::chrono::seconds kShrinkPace{1};

class CpuPlugin final : public sdk::ResourcePlugin, public UsageSource {
 public:
  CpuPlugin(CpuPluginConfig config, Machine machine, const Clock& clock)
      : config_(std::move(config)), machine_(std::move(machine)), layout_(machine_), clock_(clock) {
    const CpuState initial = InitialState(config_);
    SetPoolSizes(SizedPools({machine_, config_, initial}));
    if (config_.static_mode) {
      static_policy_.emplace(CpuLayout::LikeKubelet(machine_), config_.static_mode->options,
                             config_.reserved);
    }
  }

  Status LoadState(const std::string& saved) override {
    StatusOr<SavedPools> loaded = LoadPools(config_, saved);
    Status usable = loaded.status();
    if (usable.ok()) {
      usable = CheckPools(ViewOf(), loaded->pools);
    }
    if (!usable.ok()) {
      log::Warning("saved pools do not fit; using the configured pools",
                   {{"error", MessageOf(usable)}});
      return OkStatus();
    }
    untold_ = std::move(loaded->retiring);
    if (config_.advisor.IsThere()) {
      remembered_ = std::move(loaded->advised);
    }
    SetPoolSizes(std::move(loaded->pools));
    return OkStatus();
  }

  void Begin(const std::string& state_dir) override {
    if (config_.advisor.IsThere()) {
      advisors_ = std::make_unique<Advisors>(config_, clock_, std::exchange(remembered_, {}),
                                             [this] { NotifyChanged(); });
      advisors_->Show(ViewOf(), {});
    }
    const std::string& root = machine_.parts().root;
    if (root.empty() && !config_.classes.empty()) {
      log::Info("classes of CPUs have no effect: the machine is only described");
    }
    if (state_dir.empty() || root.empty()) {
      return;
    }
    system_files_.emplace(root);
    files_.emplace(*system_files_, root, clock_);
    tuner_ = std::make_unique<kernel::HostTuner>(*files_, state_dir + kJournal, clock_);
    Tune();
  }

  void Retire() override {
    tuner_.reset();
    advisors_.reset();
  }

  Status Restore(const sdk::Grants& grants) override {
    Rebuilt rebuilt = Rebuild(machine_, config_, state_.pools, grants, AdvisedNow());
    for (const std::string& repair : rebuilt.repairs) {
      log::Warning("cpu allocation repaired", {{"repair", repair}});
    }
    state_ = std::move(rebuilt.state);
    memo_.Forget();
    settled_.reset();
    users_.clear();
    ForEachGuest(state_, [&](const ContainerKey& key, const Guest& guest) {
      ++users_[guest.pool];
      // CPUs that it has by its record, and that its pool no longer has.
      const ResourceAllocation& recorded = grants.at(key).allocation;
      const bool beside_its_own = state_.exclusive.contains(key);
      untold_ |=
          CpuSet::Parse(beside_its_own ? recorded.shares : recorded.value).value_or(CpuSet()) -
          UsedCpus(ViewOf(), guest.pool);
    });
    SetPoolSizes(state_.pools);
    return OkStatus();
  }

  bool AnswersAreQuick() const override { return true; }

  StatusOr<HintList> Hints(const ContainerRequest& request) override {
    return CpuHints(ViewOf(), request);
  }

  HintList HeldHints(const sdk::Grant& grant, const ContainerRequest& request) override {
    const StatusOr<Placement> placement = Classify(config_, request);
    if (!placement.ok() || !placement->by_static_policy) {
      return ResourcePlugin::HeldHints(grant, request);
    }
    return CpuHints(ViewOf(), request).value_or(HintList::Impossible());
  }

  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request,
                                        const TopologyHint& hint) override {
    std::optional<Holding> former_holding = Disown(request.key);
    std::optional<Guest> former_guest = Unshare(request.key);
    View view = ViewOf();
    const Holding shared{.beside = former_guest.value_or(Guest())};  // without exclusive CPUs
    if (former_holding.has_value()) {
      view.former = &*former_holding;
    } else if (former_guest.has_value() && former_guest->lost == 0) {
      view.former = &shared;
    }
    StatusOr<Decision> decision = PlaceContainer(view, request, hint);
    if (!decision.ok()) {
      if (former_holding.has_value()) {
        Own(request.key, *std::move(former_holding));
      }
      if (former_guest.has_value()) {
        Share(request.key, *std::move(former_guest));
      }
      return decision.status();
    }
    if (std::optional<PoolMap>& pools = decision->pools;
        pools.has_value() && ChangePools(*std::move(pools))) {
      NotifyChanged();
    }
    if (std::optional<Holding>& holding = decision->holding; holding.has_value()) {
      if (holding->Shares()) {
        NoteValue(holding->beside.pool, decision->allocation.shares);
      }
      Own(request.key, *std::move(holding));
    } else if (!decision->pool.empty()) {
      NoteValue(decision->pool, decision->allocation.value);
      Share(request.key, GuestOf(config_, request, decision->pool));
    }
    Tune();
    return std::move(decision->allocation);
  }

  void Remove(const std::vector<ContainerKey>& keys) override {
    for (const ContainerKey& key : keys) {
      Disown(key);
      Unshare(key);
    }
    if (ChangePools(SizedPools(ViewOf()))) {
      NotifyChanged();
    }
    Tune();
  }

  StatusOr<std::map<ContainerKey, ResourceAllocation>> Reconcile(
      const sdk::Grants& grants) override {
    if (advisors_ != nullptr && advisors_->Follow(ViewOf())) {
      memo_.Forget();
    }
    ShrinkPools();
    Tune();
    if (advisors_ != nullptr) {
      advisors_->Show(ViewOf(), grants);
    }
    // What the previous reconcile reported is applied by now.
    told_ = std::exchange(untold_, CpuSet());
    Save();
    StringMap now = ValuesOfPools();
    if (settled_.has_value() &&
        std::includes(settled_->begin(), settled_->end(), now.begin(), now.end())) {
      return std::map<ContainerKey, ResourceAllocation>();
    }
    std::map<ContainerKey, ResourceAllocation> changed = ChangedAllocations(ViewOf(), grants);
    settled_ = changed.empty() ? std::optional(std::move(now)) : std::nullopt;
    return changed;
  }

  AllocatableResource Allocatable() const override {
    const CpuSet allocatable = machine_.cpu_set() - config_.reserved - machine_.OfflineNow();
    AllocatableResource resource = {
        .is_scalar_resource = true,
        .allocatable = static_cast<double>(allocatable.Count()),
        .capacity = static_cast<double>(machine_.cpu_set().Count()),
        .allocatable_cpus = allocatable,
    };
    for (const NumaNode& node : machine_.nodes()) {
      resource.allocatable_by_node[node.id] = (node.cpus & allocatable).Count();
      resource.capacity_by_node[node.id] = node.cpus.Count();
    }
    return resource;
  }

  std::vector<sdk::Pool> Pools() const override {
    std::vector<sdk::Pool> pools;
    PoolMap borrowed = Borrow(ViewOf(), state_.pools);
    for (const auto& [name, cpus] : state_.pools) {
      pools.push_back({.name = name,
                       .cpus = cpus,
                       .roles = FindPool(config_, name)->roles,
                       .containers = ContainersIn(state_, name),
                       .borrowed = std::move(borrowed[name]),
                       .cpu_class = FindPool(config_, name)->cpu_class});
      if (tuner_ != nullptr) {
        pools.back().class_problem = tuner_->ProblemOf(pools.back().cpu_class);
      }
    }
    if (state_.pools.contains(kDefaultPool)) {
      return pools;
    }
    pools.push_back({.name = kDefaultPool,
                     .cpus = PoolCpus(ViewOf(), kDefaultPool),
                     .containers = ContainersIn(state_, kDefaultPool)});
    return pools;
  }

  Status SetPools(const std::map<std::string, CpuSet>& cpus_by_pool) override {
    QRM_ASSIGN_OR_RETURN(PoolMap pools, ResizePools(ViewOf(), cpus_by_pool));
    ChangePools(std::move(pools));
    Tune();
    return OkStatus();
  }

  CpuUsage Usage() const override {
    CpuUsage usage = UsageOf(ViewOf());
    if (advisors_ != nullptr && !advisors_->problem().empty()) {
      usage.problems.push_back(advisors_->problem());
    }
    for (const auto& [name, profile] : config_.classes) {
      if (const std::string why = tuner_ == nullptr ? "" : tuner_->ProblemOf(name); !why.empty()) {
        usage.problems.push_back(fmt::format("class {} of CPUs is not in effect: {}", name, why));
      }
    }
    return usage;
  }

  std::string SaveState() const override { return saved_pools_; }

  std::unique_ptr<sdk::ResourcePlugin> Fork() const override {
    auto fork = std::make_unique<CpuPlugin>(config_, machine_, clock_);
    fork->remembered_ = AdvisedNow();
    fork->state_ = state_;
    fork->users_ = users_;
    fork->untold_ = told_ | untold_;
    return fork;
  }

  std::string ExportState(const sdk::Grants& grants) const override {
    return ExportJson(ViewOf(), grants,
                      advisors_ == nullptr ? std::map<int, double>() : advisors_->headroom());
  }

 private:
  View ViewOf() const {
    View view{machine_,
              config_,
              state_,
              static_policy_ ? &*static_policy_ : nullptr,
              machine_.OfflineNow(),
              &layout_,
              told_ | untold_,
              &memo_,
              &AdvisedNow()};
    view.used = advisors_ == nullptr ? nullptr : advisors_->used();
    return view;
  }

  /// CPUs by pool that replace what containers ask for.
  const PoolSizes& AdvisedNow() const {
    return advisors_ == nullptr ? remembered_ : advisors_->advised();
  }

  std::optional<Holding> Disown(const ContainerKey& key) {
    auto former = state_.exclusive.extract(key);
    if (former.empty()) {
      return std::nullopt;
    }
    memo_.Forget();
    if (former.mapped().Shares()) {
      ForgetUser(former.mapped().beside.pool);
    }
    return std::move(former.mapped());
  }
  void Own(const ContainerKey& key, Holding holding) {
    if (holding.Shares()) {
      ++users_[holding.beside.pool];
    }
    state_.exclusive[key] = std::move(holding);
    memo_.Forget();
  }
  void Share(const ContainerKey& key, Guest guest) {
    ++users_[guest.pool];
    state_.shared[key] = std::move(guest);
    memo_.Forget();
  }
  std::optional<Guest> Unshare(const ContainerKey& key) {
    auto former = state_.shared.extract(key);
    if (former.empty()) {
      return std::nullopt;
    }
    memo_.Forget();
    ForgetUser(former.mapped().pool);
    return std::move(former.mapped());
  }
  void ForgetUser(const std::string& pool) {
    if (--users_[pool] == 0) {
      users_.erase(pool);
    }
  }

  /// Shrinks elastic pools that have needed less for long enough. kShrinkPace keeps their steps
  /// slower than admissions.
  void ShrinkPools() {
    const std::set<std::string> surplus = PoolsWithSurplus(ViewOf());
    std::erase_if(surplus_since_, [&](const auto& pool) { return !surplus.contains(pool.first); });
    const auto now = clock_.Steady();
    const bool is_time = !shrunk_at_.has_value() || now - *shrunk_at_ >= kShrinkPace;
    std::set<std::string> may_shrink;
    for (const std::string& pool : surplus) {
      const auto since = surplus_since_.emplace(pool, now).first->second;
      if (is_time &&
          now - since >= FindPool(config_, pool)->size.value_or(ElasticSize()).shrink_after) {
        may_shrink.insert(pool);
      }
    }
    if (ChangePools(SizedPools(ViewOf(), may_shrink)) && !may_shrink.empty()) {
      shrunk_at_ = now;
    }
  }

  /// Replaces the pools. Returns whether they changed.
  bool ChangePools(PoolMap pools) {
    if (pools == state_.pools) {
      return false;
    }
    for (const auto& [name, cpus] : pools) {
      untold_ |= state_.pools[name] - cpus;
    }
    SetPoolSizes(std::move(pools));
    return true;
  }

  /// Notes that one more container of `pool` has `value`.
  void NoteValue(const std::string& pool, const std::string& value) {
    if (!settled_.has_value()) {
      return;
    }
    if (!users_.contains(pool)) {
      (*settled_)[pool] = value;
    } else if ((*settled_)[pool] != value) {
      settled_.reset();
    }
  }

  /// The CPUs that the containers of each pool in use should have.
  StringMap ValuesOfPools() const {
    StringMap values;
    const View view = ViewOf();
    for (const auto& [pool, users] : users_) {
      values.emplace(pool, ToString(UsedCpus(view, pool)));
    }
    return values;
  }

  /// Tunes the machine's CPUs by their owners.
  void Tune() {
    if (tuner_ != nullptr) {
      tuner_->Tune(PlanOf(ViewOf()));
    }
  }

  void SetPoolSizes(PoolMap pools) {
    state_.pools = std::move(pools);
    memo_.Forget();
    Save();
  }
  void Save() { saved_pools_ = SavePools(config_, {state_.pools, told_ | untold_, AdvisedNow()}); }

  const CpuPluginConfig config_;
  const Machine machine_;
  const CpuLayout layout_;  ///< of machine_
  const Clock& clock_;
  std::optional<StaticCpuPolicy> static_policy_;  ///< of machine_
  CpuState state_;
  mutable PlanMemo memo_;  ///< of state_
  /// The number of containers that use a pool, by pool in use: those in state_.shared, and those in
  /// state_.exclusive that share CPUs.
  std::map<std::string, uint64_t> users_;
  /// The CPUs of the containers of each pool, while all grants agree with state_.
  std::optional<StringMap> settled_;
  std::string saved_pools_;  ///< read at every commit
  /// Elastic pools that have more than they need, and when this was first seen.
  std::map<std::string, std::chrono::steady_clock::time_point> surplus_since_;
  std::optional<std::chrono::steady_clock::time_point> shrunk_at_;
  /// CPUs that pools gave up: not yet reported to their containers, and reported by the last
  /// reconcile, which may not be applied yet. Until the next one, no container gets them
  /// exclusively.
  CpuSet untold_;
  CpuSet told_;
  PoolSizes remembered_;                ///< advice from before the restart, until advisors_ exists
  std::unique_ptr<Advisors> advisors_;  ///< from Begin to Retire, if advisors are configured
  // From Begin to Retire, if the machine is a real one.
  std::optional<kernel::SystemFiles> system_files_;
  std::optional<kernel::BalancerFiles> files_;
  std::unique_ptr<kernel::HostTuner> tuner_;
};

}  // namespace

StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeCpuPlugin(const CpuPluginConfig& config,
                                                             const Machine& machine,
                                                             const Clock& clock) {
  QRM_ASSIGN_OR_RETURN(FittingConfig fitting, FitCpuConfig(machine, config));
  for (const std::string& repair : fitting.repairs) {
    log::Warning("cpu configuration reduced to the machine's CPUs", {{"repair", repair}});
  }
  return std::unique_ptr<sdk::ResourcePlugin>(
      std::make_unique<CpuPlugin>(std::move(fitting.config), machine, clock));
}

}  // namespace qrm::cpu
