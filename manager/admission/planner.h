// Plans the allocations of one container: asks the plugins, merges hints, checks the answers.
#pragma once

#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/status.h"
#include "manager/admission/draft.h"
#include "manager/admission/driver_step.h"
#include "plugins/placement/admission_options.h"
#include "topology/merge.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

class Plugins;

/// The steps from a demand to a plan that only has to be committed. The draft's explanation records
/// the inputs and the duration of each step, including a failed one.
///
/// Threads: any, if no two threads share a draft; waits for plugins.
class Planner {
 public:
  /// The references outlive the planner.
  Planner(Plugins& plugins, const Machine& machine, const Clock& clock,
          const placement::AdmissionOptions& options);

  /// Fills `draft` from its demand; without requests, there is nothing to commit. In a dry run,
  /// plugins that are processes and drivers are asked for hints only.
  /// Errors: cause and cure, without pod and container, which the caller adds. The caller has to
  /// release what the plugins in `draft.allocated` gave before the failure.
  Status Plan(Draft& draft) const;

  /// The part of Plan that changes nothing: asks for hints and merges them. Errors: as Plan's.
  Status Align(Draft& draft) const;

  /// Scope pod: merges hints for all `drafts` together, as `whole`; each draft is planned with
  /// that hint. A single draft is aligned by itself. Errors: as Plan's.
  Status AlignTogether(std::vector<Draft>& drafts, Whole& whole) const;

  /// Errors: kDeadlineExceeded if `deadline` has passed before `step`.
  Status CheckTime(Deadline deadline, const std::string& step) const;

 private:
  using Step = Status (Planner::*)(Draft&) const;
  Status Take(Draft& draft, const char* name, Step step) const;
  Status SelectPlugins(Draft& draft) const;
  Status AskDriver(Draft& draft) const;
  Status CollectHints(Draft& draft) const;
  std::vector<ContainerRequest> ProcessesOf(const Draft& draft) const;
  void LeaveOutProcesses(Draft& draft) const;
  bool IsSuspect(const std::string& resource, const Status& status) const;
  Status AskForHints(Draft& draft, const std::vector<ContainerRequest>& requests,
                     HintsByResource& hints) const;
  Status ChooseHint(Draft& draft) const;
  static Status CheckPossible(Draft& draft);
  Status Allocate(Draft& draft) const;
  void InferExclusive(const Draft& draft, const std::string& plugin,
                      AllocationByResource& given) const;
  checkpoint::Origin OriginOf(const std::string& plugin) const;
  Status Validate(Draft& draft) const;
  Status ApplyDrivers(Draft& draft, const CpuSet& offline) const;
  Deadline CallDeadline(const Draft& draft) const;

  const DriverStep driver_;
  Plugins& plugins_;
  const Machine& machine_;
  const Clock& clock_;
  const placement::AdmissionOptions& options_;
};

}  // namespace qrm::manager
