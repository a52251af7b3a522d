// Two compute drivers and the cpu plugin beside each other, step by random step, against an account
// of their own answers: QRM_DRIVER_STEPS sets how many.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/base/number.h"
#include "manager/admission/admitter.h"
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/sdk/compute_plugin.h"
#include "plugins/sdk/plugin_driver.h"
#include "test/support/is_ok.h"
#include "test/support/manual_clock.h"
#include "test/support/memory_store.h"
#include "test/support/sample_node.h"
#include "test/support/temp_decisions.h"

namespace qrm::test {
namespace {

using manager::AdmissionOptions;
using manager::Admitter;
using manager::ContainerDemand;
using manager::PluginInfo;
using manager::RunOptions;

using Random = std::mt19937;

int Pick(Random& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

/// Takes what it likes of what it may, and now and then what it may not; does not always let go.
class RandomDriver final : public sdk::ComputeDriver {
 public:
  explicit RandomDriver(Random& random) : random_(random) {}

  StatusOr<sdk::ComputeGrant> Admit(const sdk::ComputeRequest& request) override {
    if (Pick(random_, 0, 9) == 0) {
      return Errorf(StatusCode::kFailedPrecondition, "not today");
    }
    const bool wrong = Pick(random_, 0, 9) == 0;
    std::vector<int> choice;
    for (const int cpu : wrong ? CpuSet::Range(0, 15) : request.available) {
      choice.push_back(cpu);
    }
    std::shuffle(choice.begin(), choice.end(), random_);
    sdk::ComputePart part;
    for (const int cpu : choice) {
      if ((part.cpus.Count() + part.idle.Count()) * int64_t{1000} < request.milli_cpus) {
        const bool idle = !part.cpus.Empty() && Pick(random_, 0, 3) == 0;
        (idle ? part.idle : part.cpus).Add(cpu);
      }
    }
    return sdk::ComputeGrant{.parts = {part}};
  }
  Status Remove(const ContainerKey& /*key*/) override {
    return Pick(random_, 0, 9) == 0 ? Errorf(StatusCode::kUnavailable, "not now") : OkStatus();
  }

 private:
  Random& random_;
};

/// Plugins that are served on the spot, as those inside qrmd.
class ServedPlugins final : public manager::Plugins {
 public:
  void Add(const std::string& resource, sdk::ResourcePlugin& plugin) {
    auto& host = hosts_[resource];
    host = std::make_unique<sdk::PluginDriver>(plugin, resource, sdk::MakeMemoryState());
    EXPECT_TRUE(IsOk(host->Start()));
  }
  sdk::PluginDriver& host(const std::string& resource) { return *hosts_.at(resource); }

  std::vector<PluginInfo> List() const override {
    std::vector<PluginInfo> infos;
    infos.reserve(hosts_.size());
    for (const auto& [resource, host] : hosts_) {
      infos.push_back({.resource = resource, .options = host->options(), .live = true});
    }
    return infos;
  }
  std::optional<PluginInfo> Find(const std::string& resource) const override {
    const auto found = hosts_.find(resource);
    return found == hosts_.end()
               ? std::nullopt
               : std::optional(PluginInfo{
                     .resource = resource, .options = found->second->options(), .live = true});
  }
  void MarkSuspect(const std::string& /*resource*/, const std::string& /*problem*/) override {}
  void Forget(const std::string& /*resource*/) override {}

 private:
  void Start(const std::string& resource, std::shared_ptr<calls::Call> call,
             Deadline /*deadline*/) override {
    call->Serve(*hosts_.at(resource), reading_);
  }

  std::map<std::string, std::unique_ptr<sdk::PluginDriver>> hosts_;
  calls::Reading reading_{.machine_nodes = {0, 1}, .held = {}};
};

/// Sixteen CPUs on two nodes: 0 is reserved, 1 and 2 are pool batch, role owner has CPUs of its
/// own.
class DriverModel {
 public:
  DriverModel(TopologyPolicy policy, unsigned seed) : random_(seed) {
    options_.merge.policy = policy;
    options_.native_resources = {"cpu"};
    for (const std::string name : {"one", "two"}) {
      options_.drivers[name].namespaces = {"*"};
      drivers_.push_back(std::make_unique<RandomDriver>(random_));
      computes_.push_back(std::make_unique<sdk::ComputePlugin>(*drivers_.back()));
      plugins_.Add(sdk::DriverResource(name), *computes_.back());
    }
    cpu::CpuPluginConfig config{.reserved = {0}, .pools = {{"batch", {.cpus = {1, 2}}}}};
    config.roles["owner"] = {.numa = placement::NumaSpan::kFewest, .share = {.anyone = true}};
    auto plugin = cpu::MakeCpuPlugin(config, machine_);
    EXPECT_TRUE(IsOk(plugin.status()));
    cpu_ = *std::move(plugin);
    plugins_.Add("cpu", *cpu_);
    admitter_ = std::make_unique<Admitter>(Admitter::Parts{.state = state_,
                                                           .decisions = decisions_.log,
                                                           .plugins = plugins_,
                                                           .releaser = releaser_,
                                                           .machine = machine_,
                                                           .clock = clock_},
                                           options_);
  }

  /// One pod comes, comes again or goes. Errors: what is wrong then.
  Status Step() {
    const std::string name = fmt::format("pod-{}", Pick(random_, 0, 9));
    if (Pick(random_, 0, 1) == 0) {
      Admit(name);
    } else {
      Remove(name);
    }
    return Check();
  }

  /// All pods go. Errors: what is not free then.
  Status Empty() {
    for (int tries = 0; tries < 100 && !owned_.empty(); ++tries) {
      const auto owners = owned_;
      for (const auto& [name, cpus] : owners) {
        Remove(name);
      }
    }
    for (int i = 0; i < 10; ++i) {
      Remove(fmt::format("pod-{}", i));
    }
    QRM_RETURN_IF_ERROR(Check());
    return owned_.empty() && state_.Load()->pod_count() == 0
               ? OkStatus()
               : Status(StatusCode::kInternal, "pods are left");
  }
  std::size_t admitted() const { return admitted_; }

 private:
  ContainerDemand DemandOf(const std::string& name) {
    ContainerDemand demand{.pod = SamplePod(name), .container = "main", .source = "test"};
    demand.requests["cpu"] = Pick(random_, 1, 4);
    const int kind = Pick(random_, 0, 4);
    if (kind < 2) {
      demand.pod.annotations["cci.qrm.io/driver"] = kind == 0 ? "one" : "two";
    } else if (kind == 2) {
      demand.pod.role = "owner";
    }
    return demand;
  }

  void Admit(const std::string& name) {
    const auto known = demands_.find(name);
    const ContainerDemand demand = known == demands_.end() ? DemandOf(name) : known->second;
    const StatusOr<RunOptions> answer = RunOn(state_, [&] {
      return admitter_->Admit(demand, Admitter::Moment::kAtCreation,
                              DeadlineAfter(std::chrono::hours(1)));
    });
    if (!answer.ok()) {
      return;
    }
    ++admitted_;
    demands_.emplace(name, demand);
    const CpuSet cpus = CpuSet::Parse(answer->properties.at("CpusetCpus")).value_or(CpuSet());
    const bool owns =
        demand.pod.role == "owner" || demand.pod.annotations.contains("cci.qrm.io/driver");
    const auto before = owned_.find(name);
    if (before != owned_.end() && before->second != cpus) {
      wrong_ =
          fmt::format("{} had CPUs {} and has {}", name, ToString(before->second), ToString(cpus));
    }
    if (owns) {
      owned_[name] = cpus;
    } else if (known == demands_.end() && !cpus.IsSubsetOf(Shared())) {
      wrong_ = fmt::format("{} shares CPUs {} of {}", name, ToString(cpus), ToString(Shared()));
    }
  }

  void Remove(const std::string& name) {
    const std::string uid = "uid-" + name;
    const Status removed = RunOn(state_, [&] {
      for (const std::string driver : {"one", "two"}) {
        releaser_.Replay(sdk::DriverResource(driver));  // its patience is over
      }
      return releaser_.RemovePods({uid});
    });
    EXPECT_TRUE(IsOk(removed));
    Settle(state_);
    Settle(state_);  // the plugins hear of it when the driver has taken it
    if (state_.Load()->FindPod(uid) == nullptr) {
      owned_.erase(name);
      demands_.erase(name);
    }
  }

  /// What the default pool may have at most, by the account.
  CpuSet Shared() const {
    CpuSet shared = CpuSet::Range(3, 15);
    for (const auto& [name, cpus] : owned_) {
      shared -= cpus;
    }
    return shared;
  }

  Status Check() {
    if (!wrong_.empty()) {
      return {StatusCode::kInternal, wrong_};
    }
    CpuSet all;
    for (const auto& [name, cpus] : owned_) {
      if (cpus.Empty() || cpus.Intersects(all) || !cpus.IsSubsetOf(CpuSet::Range(3, 15))) {
        return Errorf(StatusCode::kInternal, "{} owns CPUs {}, beside {}", name, ToString(cpus),
                      ToString(all));
      }
      all |= cpus;
    }
    return CheckPools(all);
  }

  // Idle CPUs are withheld, too: they are on record, and not in any answer.
  Status CheckPools(const CpuSet& owned) {
    CpuSet withheld;
    state_.Load()->ForEachPod([&](const checkpoint::PodRecord& pod) {
      for (const auto& [name, record] : pod.containers) {
        const ResourceAllocation& cpu = record->allocations.at("cpu");
        withheld |= cpu.exclusive ? CpuSet::Parse(cpu.value).value_or(CpuSet()) : CpuSet();
      }
    });
    const auto pools = plugins_.host("cpu").Pools();
    QRM_RETURN_IF_ERROR(pools.status());
    for (const sdk::Pool& pool : *pools) {
      const CpuSet want = pool.name == "batch" ? CpuSet{1, 2} : CpuSet::Range(3, 15) - withheld;
      if (pool.cpus != want || want.Empty()) {
        return Errorf(StatusCode::kInternal, "pool {} is {} and not {}", pool.name,
                      ToString(pool.cpus), ToString(want));
      }
    }
    return owned.IsSubsetOf(withheld)
               ? OkStatus()
               : Errorf(StatusCode::kInternal, "{} are owned and {} withheld", ToString(owned),
                        ToString(withheld));
  }

  Random random_;
  AdmissionOptions options_;
  const Machine machine_ = SampleMachine(2, 8);
  ManualClock clock_;
  TempDecisions decisions_;
  Journal journal_;
  std::vector<std::unique_ptr<RandomDriver>> drivers_;
  std::vector<std::unique_ptr<sdk::ComputePlugin>> computes_;
  std::unique_ptr<sdk::ResourcePlugin> cpu_;
  ServedPlugins plugins_;
  manager::StateLoop state_{OpenMemoryStore(journal_)};
  manager::Releaser releaser_{state_, plugins_, {}};
  std::unique_ptr<Admitter> admitter_;
  std::map<std::string, CpuSet> owned_;  // by pod, as answered
  std::map<std::string, ContainerDemand> demands_;
  std::string wrong_;
  std::size_t admitted_ = 0;
};

class DriverModelTest : public testing::TestWithParam<TopologyPolicy> {};

TEST_P(DriverModelTest, EveryCpuHasOneOwnerAndAllAreFreeAtTheEnd) {
  const char* const wanted = std::getenv("QRM_DRIVER_STEPS");
  const int steps = wanted == nullptr ? 1000 : ParseNumber<int>(wanted).value_or(0);
  DriverModel model(GetParam(), 1);
  for (int step = 0; step < steps; ++step) {
    ASSERT_TRUE(IsOk(model.Step())) << "step " << step;
  }
  EXPECT_TRUE(IsOk(model.Empty()));
  EXPECT_GT(model.admitted(), static_cast<std::size_t>(steps) / 10);
}

INSTANTIATE_TEST_SUITE_P(Policies, DriverModelTest,
                         testing::Values(TopologyPolicy::kNone, TopologyPolicy::kBestEffort,
                                         TopologyPolicy::kRestricted,
                                         TopologyPolicy::kSingleNumaNode),
                         [](const auto& param_info) {
                           std::string name(ToString(param_info.param));
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace qrm::test
