// Checks a compute driver in the order of a container's life.
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "manager/drivers/driver_grant.h"
#include "manager/registry/registration_check.h"
#include "plugins/sdk/calls/compute_calls.h"
#include "plugins/sdk/calls/registration_calls.h"
#include "plugins/sdk/compute_driver.h"
#include "tools/plugin_check/conformance.h"
#include "tools/plugin_check/run.h"

namespace qrm::manager {
namespace {

constexpr double kMilli = 1000;

/// One run: the driver, and what it has answered so far.
class DriverRun : private Checked {
 public:
  DriverRun(const CheckSettings& settings, const Machine& machine,
            const std::function<void(const RuleResult&)>& report)
      : Checked(settings, machine, report, "--amount or --spec"), offered_(machine.cpu_set()) {
    offered_.Remove(offered_.First());
  }

  Verdict All() {
    if (Starts() && Identity()) {
      Life();
      RefusesWhenNothingIsLeft();
      SurvivesNonsense();
      Removes();
    }
    return Worst();
  }

 private:
  bool Starts() {
    if (settings_.command.empty()) {
      return true;
    }
    return HoldsIf(RunsAgain(), "serves its socket when it is started");
  }

  bool Identity() {
    const std::string rule = "announces itself as a compute driver";
    const auto identity = Ask<calls::GetInfo>({});
    if (!identity.ok()) {
      return Broken(rule, MessageOf(identity.status()));
    }
    if (identity->type != calls::kComputeDriverType) {
      return Broken(rule, fmt::format("its type is \"{}\"; answer \"{}\"", identity->type,
                                      calls::kComputeDriverType));
    }
    Status good = sdk::CheckDriverName(identity->name);
    if (good.ok()) {
      good = CheckVersions(identity->supported_versions);
    }
    return HoldsIf(good, rule, identity->name);
  }

  void Life() {
    sdk::ComputeGrant first;
    if (!Admits(RequestFor("main", offered_), first)) {
      return;
    }
    GivesTheSame(first, "gives the same when it is asked again");
    Adds("main", "first", first);
    Adds("main", "second", first);
    Resizes(first);
    const CpuSet left = offered_ - first.Cpus() - first.Idle();
    sdk::ComputeGrant other;
    if (left.Count() >= settings_.amount) {
      Admits(RequestFor("sidecar", left), other);
    } else {
      Skipped("admits container sidecar", "there is no room for two");
    }
    if (settings_.command.empty()) {
      Skipped("keeps what it gave through kill -9", "give --command");
    } else if (HoldsIf(RunsAgain(), "serves again after kill -9")) {
      GivesTheSame(first, "keeps what it gave through kill -9");
    }
  }

  Status RunsAgain() {
    const Status runs = plugin_.RunAnew();  // it need not have what resource plugins have
    return runs.code() == StatusCode::kUnimplemented ? OkStatus() : runs;
  }

  bool Admits(const sdk::ComputeRequest& request, sdk::ComputeGrant& given) {
    return Admits(request, "admits container " + request.key.container, given);
  }

  bool Admits(const sdk::ComputeRequest& request, const std::string& rule,
              sdk::ComputeGrant& given) {
    const auto grant = Ask<calls::ComputeAdmit>(request);
    if (!grant.ok()) {
      return RefusedOrBroken(rule, grant.status());
    }
    given = *grant;
    const DriverOffer offer{.available = request.available, .shared = machine_.cpu_set()};
    return HoldsIf(CheckGrant(given, {.offer = offer,
                                      .cpus = settings_.amount,
                                      .machine = machine_,
                                      .pool_is_followed = true}),
                   rule, fmt::format("CPUs {}", ToString(given.Cpus())));
  }

  void GivesTheSame(const sdk::ComputeGrant& given, const std::string& rule) {
    const auto again = Ask<calls::ComputeAdmit>(RequestFor("main", offered_));
    if (!again.ok()) {
      Broken(rule, MessageOf(again.status()));
    } else if (const std::string first = TextOf(given), then = TextOf(*again); first != then) {
      Broken(rule, fmt::format("first {}, then {}", first, then));
    } else {
      Holds(rule);
    }
  }

  /// "2-3", "2-3 and idle 6, sharing 8-9".
  std::string TextOf(const sdk::ComputeGrant& given) const {
    std::string text = ToString(given.Cpus());
    if (const CpuSet idle = given.Idle(); !idle.Empty()) {
      text += fmt::format(" and idle {}", ToString(idle));
    }
    if (given.shares()) {
      text += fmt::format(", sharing {}", ToString(given.SharedOf(machine_.cpu_set())));
    }
    return text;
  }

  void Adds(const std::string& container, const std::string& id, const sdk::ComputeGrant& grant) {
    HoldsIf(Ask<calls::ComputeAdd>({.key = {kCheckedPod, container},
                                    .pod_namespace = "default",
                                    .pod_name = "qrm-plugin-check",
                                    .container_id = id,
                                    .cgroup = "/qrm-plugin-check",
                                    .cpus = grant.Cpus()})
                .status(),
            fmt::format("takes the start of the {} instance", id));
  }

  /// Its answer about a running container is not put in force.
  void Resizes(const sdk::ComputeGrant& first) {
    const auto options = Ask<calls::ComputeOptions>({});
    if (!options.ok() || !options->resizes) {
      return;
    }
    sdk::ComputeRequest request = RequestFor("main", first.Cpus() | first.Idle());
    request.current = first.Cpus();
    sdk::ComputeGrant again;
    Admits(request, "chooses for a running container among the CPUs that it may have", again);
    Adds("main", "second", first);
    GivesTheSame(first, "keeps what a container has while nothing else is in force");
  }

  void RefusesWhenNothingIsLeft() {
    const std::string rule = "rejects a request when no CPU is left to choose from";
    const auto grant = Ask<calls::ComputeAdmit>(RequestFor("late", CpuSet()));
    if (grant.ok()) {
      Broken(rule, fmt::format("it gave CPUs {}; answer with an error", ToString(grant->Cpus())));
    } else if (plugin_.refused()) {
      Holds(rule, MessageOf(grant.status()));
    } else {
      Broken(rule, MessageOf(grant.status()));
    }
  }

  void SurvivesNonsense() {
    const std::string rule = "answers after a request that says nothing";
    (void)Ask<calls::ComputeAdmit>({});
    HoldsIf(Ask<calls::GetInfo>({}).status(), rule);
  }

  void Removes() {
    const auto remove = [&](const std::string& container) {
      return Ask<calls::ComputeRemove>({.key = {kCheckedPod, container}, .container_id = "second"})
          .status();
    };
    HoldsIf(remove("main"), "takes back what a container had");
    HoldsIf(remove("main"), "takes a repeated removal");
    HoldsIf(remove("never"), "takes the removal of a container that it does not know");
    HoldsIf(remove(""), "takes the removal of all that a pod has");
    sdk::ComputeGrant again;
    if (!refused()) {
      Admits(RequestFor("again", offered_), again);
      HoldsIf(remove(""), "takes that back, too");
    }
  }

  sdk::ComputeRequest RequestFor(const std::string& container, const CpuSet& available) const {
    return {.key = {kCheckedPod, container},
            .pod_namespace = "default",
            .pod_name = "qrm-plugin-check",
            .spec = settings_.spec,
            .available = available,
            .shared = machine_.cpu_set(),
            .reserved = machine_.cpu_set() - offered_,
            .milli_cpus = std::llround(settings_.amount * kMilli),
            .annotations = {settings_.annotations.begin(), settings_.annotations.end()},
            .labels = {settings_.labels.begin(), settings_.labels.end()}};
  }

  CpuSet offered_;
};

}  // namespace

Verdict CheckDriver(const CheckSettings& settings, const Machine& machine,
                    const std::function<void(const RuleResult&)>& report) {
  return DriverRun(settings, machine, report).All();
}

}  // namespace qrm::manager
