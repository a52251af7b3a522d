// Two compute drivers and the cpu plugin beside each other, by random steps, against a ledger that
// knows the rules and the drivers' orders, and predicts each decision. QRM_DRIVER_STEPS sets the
// number of steps.
#include "test/manager/admission/driver_model.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/base/section.h"
#include "manager/admission/admitter.h"
#include "manager/admission/dry_run.h"
#include "manager/admission/releaser.h"
#include "manager/state/allocation_check.h"
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/sdk/calls/compute_calls.h"
#include "plugins/sdk/compute_plugin.h"
#include "test/support/is_ok.h"
#include "test/support/manual_clock.h"
#include "test/support/memory_store.h"
#include "test/support/rounds.h"
#include "test/support/sample_node.h"
#include "test/support/temp_decisions.h"

namespace qrm::test::driver_model_test {
namespace {

using manager::Admitter;
using manager::RunOptions;
using placement::AdmissionOptions;
using placement::ContainerDemand;

/// How a container gets CPUs.
enum class Kind : uint8_t { kFirstDriver, kSecondDriver, kOwner, kShares };

/// Sixteen CPUs on two nodes: 0 is reserved, 1 and 2 are pool batch, role owner has exclusive CPUs.
class DriverModel {
 public:
  DriverModel(TopologyPolicy policy, unsigned seed) : random_(seed), ledger_(policy) {
    options_.merge.policy = policy;
    options_.native_resources = {"cpu"};
    for (const std::string name : {"one", "two"}) {
      options_.drivers[name].namespaces = {"*"};
      drivers_.push_back(std::make_unique<RandomDriver>(random_));
      computes_.push_back(std::make_unique<sdk::ComputePlugin>(*drivers_.back()));
      plugins_.Add(sdk::DriverResource(name), *computes_.back());
    }
    const auto keys = config::Section::Parse(
        "{reserved-cpus: '0', pools: {batch: {cpus: 1-2}}, "
        "roles: {owner: {numa: fewest, share-numa-with: ['*']}}}",
        "test");
    EXPECT_TRUE(IsOk(keys.status()));
    auto plugin = cpu::MakeCpuPlugin(*cpu::ParseCpuConfig(*keys), machine_);
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

  /// One pod comes, comes again, changes or goes. Errors: a wrong decision.
  Status Step() {
    const std::string name = fmt::format("pod-{}", Pick(random_, 0, 9));
    const int what = Pick(random_, 0, 4);
    QRM_RETURN_IF_ERROR(what == 0 ? Change(name) : what < 3 ? Admit(name) : Remove(name));
    QRM_RETURN_IF_ERROR(Check());
    return CheckDryRuns();
  }

  /// All pods go. Errors: CPUs that are not free then.
  Status Empty() {
    for (int tries = 0; tries < 100 && !pods_.empty(); ++tries) {
      const auto all = pods_;
      for (const auto& [name, pod] : all) {
        QRM_RETURN_IF_ERROR(Remove(name));
      }
    }
    QRM_RETURN_IF_ERROR(Check());
    return ledger_.Free() == CpuSet::Range(3, 15) && state_.Load()->pod_count() == 0
               ? OkStatus()
               : Status(StatusCode::kInternal, "pods are left");
  }
  std::size_t admitted() const { return admitted_; }

 private:
  struct Pod {
    placement::ContainerDemand demand;
    Kind kind = Kind::kShares;
    int cpus = 0;
    CpuSet runs_on;  ///< as it was answered; empty until then
    Given given;     ///< by its driver
  };

  Pod Draw(const std::string& name) {
    Pod pod{.demand = {.pod = SamplePod(name), .container = "main", .source = "test"},
            .cpus = Pick(random_, 1, 4)};
    pod.demand.requests.Edit()["cpu"] = pod.cpus;
    switch (Pick(random_, 0, 4)) {
      case 0:
        pod.kind = Kind::kFirstDriver;
        pod.demand.pod.annotations.Edit()["cci.qrm.io/driver"] = "one";
        break;
      case 1:
        pod.kind = Kind::kSecondDriver;
        pod.demand.pod.annotations.Edit()["cci.qrm.io/driver"] = "two";
        break;
      case 2:
        pod.kind = Kind::kOwner;
        pod.demand.pod.role = "owner";
        break;
      default:
        break;
    }
    return pod;
  }

  RandomDriver* DriverOf(const Pod& pod) {
    return pod.kind == Kind::kFirstDriver    ? drivers_.front().get()
           : pod.kind == Kind::kSecondDriver ? drivers_.back().get()
                                             : nullptr;
  }

  struct Answer {
    Status status;
    CpuSet cpus;  ///< empty where it was rejected
  };

  Status Admit(const std::string& name) {
    const auto known = pods_.find(name);
    Pod pod = known == pods_.end() ? Draw(name) : known->second;
    RandomDriver* const driver = DriverOf(pod);
    const auto kept = driver == nullptr ? std::nullopt : driver->Holds(pod.demand.key());
    if (driver != nullptr) {
      (void)driver->TakeClings();
    }
    const StatusOr<RunOptions> options = RunOn(state_, [&] {
      return admitter_->Admit(pod.demand, Admitter::Moment::kAtCreation,
                              DeadlineAfter(std::chrono::hours(1)));
    });
    const Answer answer{options.status(),
                        options.ok()
                            ? CpuSet::Parse(options->properties.at("CpusetCpus")).value_or(CpuSet())
                            : CpuSet()};
    const auto asked = driver == nullptr ? std::nullopt : driver->TakeAsked();
    if (known != pods_.end()) {
      // No update reaches the owners here, so that they never leave their former CPUs.
      const CpuSet left = manager::CpusBeingLeft(*state_.Load(), pod.demand.key());
      const bool is_same =
          answer.cpus.IsSubsetOf(pod.runs_on) && (pod.runs_on - answer.cpus).IsSubsetOf(left);
      return Expect(name, is_same || pod.kind == Kind::kShares, "has other CPUs", answer);
    }
    QRM_RETURN_IF_ERROR(driver != nullptr ? ExpectOfDriver(name, pod, asked, kept, answer)
                                          : ExpectOfPlugin(name, pod, answer));
    if (answer.status.ok()) {
      ++admitted_;
      pod.runs_on = answer.cpus;
      pod.given = asked.has_value() ? asked->gave : kept.value_or(Given());
      pods_.emplace(name, pod);
    }
    return OkStatus();
  }

  static Status Expect(const std::string& name, bool holds, const std::string& otherwise,
                       const Answer& answer) {
    return holds ? OkStatus()
                 : Errorf(StatusCode::kInternal, "{} {}: {}, CPUs {}", name, otherwise,
                          MessageOf(answer.status), ToString(answer.cpus));
  }

  /// A running container of a driver is resized, or its driver looks at it again.
  Status Change(const std::string& name) {
    const auto known = pods_.find(name);
    RandomDriver* const driver = known == pods_.end() ? nullptr : DriverOf(known->second);
    if (driver == nullptr || leaving_.contains(name)) {
      return OkStatus();
    }
    Pod pod = known->second;
    pod.cpus = Pick(random_, 1, 4);
    const bool is_review = pod.cpus == known->second.cpus;
    pod.demand.requests.Edit()["cpu"] = pod.cpus;
    (void)driver->TakeClings();
    const StatusOr<RunOptions> options = RunOn(state_, [&] {
      return admitter_->Admit(
          pod.demand, is_review ? Admitter::Moment::kForReview : Admitter::Moment::kForResize,
          DeadlineAfter(std::chrono::hours(1)));
    });
    const auto asked = driver->TakeAsked();
    const Answer answer{options.status(), {}};
    if (!asked.has_value() && driver->TakeClings()) {
      return Expect(name, !answer.status.ok(), "has what another one holds", answer);
    }
    const CpuSet own = pod.given.All();
    const bool fits = is_review || ledger_.Fits(pod.cpus, own);
    QRM_RETURN_IF_ERROR(Expect(name, asked.has_value() == fits,
                               fits ? "fits and its driver is not asked" : "does not fit", answer));
    const bool good = fits && asked.has_value() &&
                      ledger_.MayGive(asked->gave, ledger_.Offer(asked->near, own), pod.cpus, own);
    QRM_RETURN_IF_ERROR(Expect(name, answer.status.ok() == good,
                               good ? "is rejected" : "got what its driver may not give", answer));
    if (fits && asked.has_value()) {
      QRM_RETURN_IF_ERROR(Expect(name, asked->offered == ledger_.Offer(asked->near, own),
                                 "was offered " + ToString(asked->offered), answer));
    }
    if (good && asked.has_value()) {
      pod.given = asked->gave;
      pod.runs_on = pod.given.own.cpus | pod.given.SharedOf(ledger_.Free() | own);
      ledger_.Hold(name, pod.given.All());
      QRM_RETURN_IF_ERROR(TellDriver(pod));
      known->second = pod;
    }
    return OkStatus();
  }

  /// As the manager does once the change is on record.
  Status TellDriver(const Pod& pod) {
    const std::string driver = sdk::DriverResource(pod.kind == Kind::kFirstDriver ? "one" : "two");
    return plugins_.Local(driver)
        ->Answer<calls::ComputeAdd>(
            {.resource = driver, .key = pod.demand.key(), .cpus = pod.given.own.cpus})
        .status();
  }

  /// A dry run of a new container knows what drivers hold, also if the cpu plugin would place it.
  Status CheckDryRuns() {
    const manager::DryRun dry_run(
        {.plugins = plugins_, .machine = machine_, .clock = clock_, .state = &state_}, options_);
    for (const Kind kind : {Kind::kFirstDriver, Kind::kOwner}) {
      Pod pod{.demand = {.pod = SamplePod("tried"), .container = "main", .source = "test"},
              .kind = kind,
              .cpus = Pick(random_, 1, 8)};
      pod.demand.requests.Edit()["cpu"] = pod.cpus;
      if (kind == Kind::kOwner) {
        pod.demand.pod.role = "owner";
      } else {
        pod.demand.pod.annotations.Edit()["cci.qrm.io/driver"] = "one";
      }
      const auto report = dry_run.Run({pod.demand}, DeadlineAfter(std::chrono::hours(1)));
      const bool fits =
          ledger_.Fits(pod.cpus) && (kind != Kind::kOwner || ledger_.LeavesOne(pod.cpus));
      const bool admits = report.result == manager::DryRunReport::Result::kAdmitted;
      if (fits != admits) {
        return Errorf(StatusCode::kInternal, "a dry run of {} CPUs of {} says {}, and {} are free",
                      pod.cpus, kind == Kind::kOwner ? "the cpu plugin" : "a driver",
                      report.message, ToString(ledger_.Free()));
      }
    }
    return OkStatus();
  }

  /// The cpu plugin gives what fits; containers that share get all CPUs that are not exclusive.
  Status ExpectOfPlugin(const std::string& name, const Pod& pod, const Answer& answer) {
    if (pod.kind == Kind::kShares) {
      return Expect(name, answer.status.ok() && answer.cpus == ledger_.Free(),
                    "does not share what is free", answer);
    }
    const bool fits = ledger_.Fits(pod.cpus) && ledger_.LeavesOne(pod.cpus);
    QRM_RETURN_IF_ERROR(Expect(name, answer.status.ok() == fits,
                               fits ? "fits and is rejected" : "does not fit", answer));
    if (!fits) {
      return OkStatus();
    }
    QRM_RETURN_IF_ERROR(
        Expect(name, answer.cpus.Count() == pod.cpus && answer.cpus.IsSubsetOf(ledger_.Free()),
               "has what is not free", answer));
    ledger_.Hold(name, answer.cpus);
    return OkStatus();
  }

  /// A driver is asked exactly when there are CPUs to offer, and is offered exactly these. Its
  /// answer counts when it was offered. `kept` is what it did not release after a rejection: it
  /// answers with that again.
  Status ExpectOfDriver(const std::string& name, const Pod& pod, const std::optional<Asked>& asked,
                        const std::optional<Given>& kept, const Answer& answer) {
    const bool fits = ledger_.Fits(pod.cpus);
    if (!asked.has_value() && DriverOf(pod)->TakeClings()) {
      // It was offered CPUs that it kept after a rejection of another container.
      return Expect(name, !answer.status.ok(), "has what another one holds", answer);
    }
    if (!asked.has_value() && !(fits && kept.has_value())) {
      return Expect(name, !fits && !answer.status.ok(), "fits and its driver is not asked", answer);
    }
    QRM_RETURN_IF_ERROR(Expect(name, fits, "does not fit", answer));
    if (!asked.has_value()) {
      return ExpectKept(name, pod, *kept, answer);
    }
    return ExpectJudged(name, pod, *asked, answer);
  }

  Status ExpectJudged(const std::string& name, const Pod& pod, const Asked& asked,
                      const Answer& answer) {
    QRM_RETURN_IF_ERROR(Expect(name, asked.offered == ledger_.Offer(asked.near),
                               "was offered " + ToString(asked.offered), answer));
    const bool good = ledger_.MayGive(asked.gave, asked.offered, pod.cpus);
    QRM_RETURN_IF_ERROR(Expect(name, answer.status.ok() == good,
                               good ? "is rejected" : "got what its driver may not give", answer));
    if (good) {
      QRM_RETURN_IF_ERROR(
          Expect(name, answer.cpus == (asked.gave.own.cpus | asked.gave.SharedOf(ledger_.Free())),
                 "has not what its driver gave", answer));
      ledger_.Hold(name, asked.gave.All());
    }
    return OkStatus();
  }

  Status ExpectKept(const std::string& name, const Pod& pod, const Given& kept,
                    const Answer& answer) {
    if (!answer.status.ok()) {  // still a wrong answer, or not near although it should be
      return OkStatus();
    }
    const CpuSet uses = kept.own.cpus | kept.SharedOf(ledger_.Free());
    QRM_RETURN_IF_ERROR(
        Expect(name, answer.cpus == uses && ledger_.MayGive(kept, ledger_.Free(), pod.cpus),
               "has what is not free", answer));
    ledger_.Hold(name, kept.All());
    return OkStatus();
  }

  /// A pod is gone when its driver has released it, and keeps all its allocations until then.
  Status Remove(const std::string& name) {
    const std::string uid = "uid-" + name;
    const Status removed = RunOn(state_, [&] {
      for (const std::string driver : {"one", "two"}) {
        releaser_.Replay(sdk::DriverResource(driver));  // its time is over
      }
      return releaser_.RemovePods({uid});
    });
    QRM_RETURN_IF_ERROR(removed);
    Settle(state_);
    Settle(state_);  // plugins are notified after the driver
    // A removal that is due is finished together with any other.
    std::erase_if(pods_, [&](const auto& entry) {
      const auto& [other, pod] = entry;
      RandomDriver* const driver = DriverOf(pod);
      const bool gone = driver == nullptr ? other == name
                        : leaving_.contains(other) || other == name
                            ? !driver->Holds(pod.demand.key()).has_value()
                            : false;
      if (gone) {
        ledger_.Release(other);
        leaving_.erase(other);
      }
      return gone;
    });
    if (pods_.contains(name)) {
      leaving_.insert(name);
    }
    return OkStatus();
  }

  /// The records and the cpu plugin agree with the ledger.
  Status Check() {
    CpuSet withheld;
    std::set<std::string> recorded;
    state_.Load()->ForEachPod([&](const checkpoint::PodRecord& pod) {
      recorded.insert(pod.meta.name);
      for (const auto& [container, record] : pod.containers) {
        const ResourceAllocation& cpu = record->allocations.at("cpu");
        withheld |= cpu.exclusive ? CpuSet::Parse(cpu.value).value_or(CpuSet()) : CpuSet();
      }
    });
    std::set<std::string> known;
    for (const auto& [name, pod] : pods_) {
      known.insert(name);
    }
    if (recorded != known) {
      return Errorf(StatusCode::kInternal, "{} are on record, and {} should be",
                    fmt::join(recorded, ", "), fmt::join(known, ", "));
    }
    const CpuSet free = ledger_.Free();
    if (withheld != CpuSet::Range(3, 15) - free) {
      return Errorf(StatusCode::kInternal, "{} are owned on record, and {} are free",
                    ToString(withheld), ToString(free));
    }
    return CheckPools(free);
  }

  /// Containers that share CPUs of the default pool get the cpu plugin's current CPUs of it.
  Status CheckShares(const CpuSet& free) {
    QRM_ASSIGN_OR_RETURN(const calls::HeldAllocations held,
                         plugins_.Local("cpu")->Answer<calls::GetResourcesAllocation>({}));
    for (const sdk::HeldAllocation& allocation : *held) {
      const auto pod = std::find_if(pods_.begin(), pods_.end(), [&](const auto& entry) {
        return entry.second.demand.key() == allocation.key;
      });
      if (pod != pods_.end() && pod->second.given.shared.has_value()) {
        const auto& [name, given] = *pod;
        const std::string& told = allocation.allocation->shares;
        const std::string want = ToString(given.given.SharedOf(free));
        if (told != want) {
          return Errorf(StatusCode::kInternal, "{} is set to share {} and not {}", name, told,
                        want);
        }
      }
    }
    return OkStatus();
  }

  Status CheckPools(const CpuSet& free) {
    QRM_RETURN_IF_ERROR(CheckShares(free));
    const auto pools = plugins_.Local("cpu")->Answer<calls::GetPools>("cpu");
    QRM_RETURN_IF_ERROR(pools.status());
    for (const sdk::Pool& pool : *pools) {
      const CpuSet want = pool.name == "batch" ? CpuSet{1, 2} : free;
      if (pool.cpus != want || want.Empty()) {
        return Errorf(StatusCode::kInternal, "pool {} is {} and not {}", pool.name,
                      ToString(pool.cpus), ToString(want));
      }
    }
    return OkStatus();
  }

  Random random_;
  placement::AdmissionOptions options_;
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
  Ledger ledger_;
  std::map<std::string, Pod> pods_;
  std::set<std::string> leaving_;  // removed, and their drivers have not released them
  std::size_t admitted_ = 0;
};

class DriverModelTest : public testing::TestWithParam<TopologyPolicy> {};

TEST_P(DriverModelTest, EveryCpuHasOneOwnerAndAllAreFreeAtTheEnd) {
  const int steps = RoundsBy("QRM_DRIVER_STEPS", 1000);
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
}  // namespace qrm::test::driver_model_test
