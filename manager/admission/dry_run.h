// Decides about a pod as if it were created now, without allocating anything.
#pragma once

#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/status.h"
#include "manager/admission/admission_options.h"
#include "manager/admission/class_step.h"
#include "manager/admission/draft.h"
#include "manager/admission/dry_run_report.h"
#include "manager/admission/planner.h"
#include "manager/demand/demand_source.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

class ClassBook;
class Plugins;
class Snapshots;

/// Runs the steps of an admission up to the merged hints: nothing is allocated, committed or
/// recorded. Each container is tried without the pod's other containers. With scope pod, all are
/// tried together first, as in an admission.
///
/// Threads: any, also while pods are admitted; waits for plugins.
class DryRun {
 public:
  struct Parts {
    Plugins& plugins;
    const Machine& machine;
    const Clock& clock;
    const Snapshots* state = nullptr;    ///< for users of classes; null: no container gets a class
    const ClassBook* classes = nullptr;  ///< null: no container gets a class
  };
  /// All parts outlive it.
  DryRun(const Parts& parts, AdmissionOptions options);
  ~DryRun() = default;
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  /// `admissions` are those of one new pod: one demand with all `others`, or several demands that
  /// are placed one by one. A rejected container ends its admission.
  DryRunReport Run(const std::vector<ContainerDemand>& admissions, Deadline deadline) const;

 private:
  struct Call;

  void RunOne(const ContainerDemand& asked, Deadline deadline, DryRunReport& report) const;
  void AddDrafts(Call& call) const;
  void Decide(Call& call, Draft& draft, DryRunReport::Result result,
              const std::string& message) const;
  void Reject(Call& call, Draft& failed, const Status& cause) const;

  const Clock& clock_;
  const AdmissionOptions options_;
  const Planner planner_;
  const ClassStep classes_;
  const Snapshots* const state_;
};

}  // namespace qrm::manager
