// Decides about a pod as if it were created now, without changing anything.
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

/// Takes the steps of an admission with forks of the built-in plugins: nothing is committed or
/// recorded. Plugins that are processes, and drivers, give hints only, for each container without
/// the pod's other containers.
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
  DryRun(const Parts& parts, placement::AdmissionOptions options);
  ~DryRun() = default;
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  /// As Admitter's; not while Run runs.
  void TakeRules(const placement::AdmissionOptions& options) { options_.TakeRules(options); }

  /// `admissions` are those of one new pod: one demand with all `others`, or several demands that
  /// are placed one by one. A rejected container ends its admission.
  DryRunReport Run(const std::vector<placement::ContainerDemand>& admissions,
                   Deadline deadline) const;

 private:
  struct Call;

  /// `others` are the containers of the pod beside the asked one; they may have it, too.
  void RunOne(Call& call, const std::vector<placement::ContainerDemand>& others) const;
  Status Plan(Call& call, Draft& draft, const std::string& skipped) const;
  static void AddDrafts(Call& call, bool placed);
  static void AddNotes(Call& call);
  void Decide(Call& call, Draft& draft, DryRunReport::Result result,
              const std::string& message) const;
  void Reject(Call& call, Draft& failed, const Status& cause) const;

  const Parts parts_;
  placement::AdmissionOptions options_;
  const ClassStep classes_;
};

}  // namespace qrm::manager
