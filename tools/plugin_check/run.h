// One run of the conformance test: what was asked and answered so far.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/resource.h"
#include "tools/plugin_check/conformance.h"
#include "tools/plugin_check/plugin_caller.h"
#include "topology/machine.h"

namespace qrm::manager {

/// The pod that the plugin is asked for.
inline constexpr char kCheckedPod[] = "00000000-qrm-plugin-check";

/// What the checks of plugins and of drivers have in common: the caller and the reports.
class Checked {
 protected:
  /// `remedy`: what to do about a request that is rejected.
  Checked(const CheckSettings& settings, const Machine& machine,
          const std::function<void(const RuleResult&)>& report, std::string remedy)
      : settings_(settings),
        machine_(machine),
        plugin_(settings, machine.node_mask()),
        report_(report),
        remedy_(std::move(remedy)) {}

  Verdict Worst() const {
    return broken_ ? Verdict::kBroken : refused_ ? Verdict::kRefused : Verdict::kHolds;
  }
  bool refused() const { return refused_; }

  template <typename C>
  StatusOr<typename C::Answer> Ask(const typename C::Request& request) {
    return plugin_.Ask<C>(request);
  }

  bool Holds(const std::string& rule, const std::string& detail = "") {
    report_({rule, Verdict::kHolds, detail});
    return true;
  }
  bool Broken(const std::string& rule, const std::string& detail) {
    broken_ = true;
    report_({rule, Verdict::kBroken, detail});
    return false;
  }
  bool Refused(const std::string& rule, const std::string& refusal) {
    refused_ = true;
    report_({rule, Verdict::kRefused, refusal + "; ask for what it has with " + remedy_});
    return false;
  }
  /// To the call that has just ended: what the plugin says is its own affair, that it breaks the
  /// protocol is not.
  bool RefusedOrBroken(const std::string& rule, const Status& error) {
    return plugin_.refused() ? Refused(rule, MessageOf(error)) : Broken(rule, MessageOf(error));
  }
  bool Skipped(const std::string& rule, const std::string& why) {
    report_({rule, Verdict::kSkipped, why});
    return true;
  }
  bool HoldsIf(const Status& status, const std::string& rule, const std::string& detail = "") {
    return status.ok() ? Holds(rule, detail) : Broken(rule, MessageOf(status));
  }

  const CheckSettings& settings_;
  const Machine& machine_;
  PluginCaller plugin_;

 private:
  const std::function<void(const RuleResult&)>& report_;
  const std::string remedy_;
  bool broken_ = false;
  bool refused_ = false;
};

/// One run: the plugin, and what it has answered so far.
class Run : private Checked {
 public:
  Run(const CheckSettings& settings, const Machine& machine,
      const std::function<void(const RuleResult&)>& report)
      : Checked(settings, machine, report, "--amount, --role or --label"),
        resource_(settings.resource) {}

  Verdict All();

 private:
  bool Starts();
  bool Options();
  bool Identity();
  void Hints();
  void Lifetime();
  bool Allocates(const ContainerRequest& request, AllocationByResource& given);
  void Prepares(const ContainerKey& key);
  void GivesTheSameAgain(const ContainerRequest& request, const AllocationByResource& given,
                         const std::string& rule);
  void KeepsCpusApart(const AllocationByResource& first, const AllocationByResource& second);
  void Reconciles(const AllocationByResource& first, const AllocationByResource& second);
  /// What the plugin lists as allocated; nothing when that has settled `rule` already.
  std::optional<AllocationByContainer> Listed(const std::string& rule);
  void Survives(const ContainerRequest& request, const AllocationByResource& given);
  void RefusesWhenFull(CpuSet taken);
  void Offers();
  void SurvivesNonsense();
  void Removes();
  void GivesAgain(const ContainerRequest& request);
  void ForgetsThePod();

  ContainerRequest RequestFor(const std::string& container, uint64_t index) const;
  Status CheckAgainstMachine(const ContainerKey& key, const AllocationByResource& given) const;

  StatusOr<AllocationByContainer> Reconcile();

  std::string resource_;
  PluginOptions options_;
  std::optional<TopologyHint> hint_;
};

}  // namespace qrm::manager
