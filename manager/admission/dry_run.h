// Tells what would become of a pod if it came now.
#pragma once

#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/status.h"
#include "manager/admission/class_step.h"
#include "manager/admission/draft.h"
#include "manager/admission/dry_run_report.h"
#include "manager/admission/planner.h"
#include "manager/demand/demand_source.h"
#include "plugins/placement/admission_options.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

class ClassBook;
class Plugins;
class Snapshots;

/// The steps of an admission up to the merged hints, which only ask the plugins: nothing is
/// allocated, committed or remembered. A container is asked about as if the pod's others were not
/// there; with scope pod, all are asked about together first, as they are when they come.
///
/// Threads: any, also while pods are admitted; waits for plugins.
class DryRun {
 public:
  struct Parts {
    Plugins& plugins;
    const Machine& machine;
    const Clock& clock;
    const Snapshots* state = nullptr;    ///< who has which class; null: nobody gets one
    const ClassBook* classes = nullptr;  ///< null: nobody gets a class
  };
  /// All parts outlive it.
  DryRun(const Parts& parts, placement::AdmissionOptions options);
  ~DryRun() = default;
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  /// `admissions` are those of one new pod: one demand with all `others`, or several, each of
  /// containers that are placed without the rest. A container that is rejected ends its admission.
  DryRunReport Run(const std::vector<placement::ContainerDemand>& admissions,
                   Deadline deadline) const;

 private:
  struct Call;

  void RunOne(const placement::ContainerDemand& asked, Deadline deadline,
              DryRunReport& report) const;
  void AddDrafts(Call& call) const;
  void Decide(Call& call, Draft& draft, DryRunReport::Result result,
              const std::string& message) const;
  void Reject(Call& call, Draft& failed, const Status& cause) const;

  const Clock& clock_;
  const placement::AdmissionOptions options_;
  const Planner planner_;
  const ClassStep classes_;
  const Snapshots* const state_;
};

}  // namespace qrm::manager
