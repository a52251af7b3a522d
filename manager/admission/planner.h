// Plans what one container gets: asks the plugins, merges their hints, checks what they gave.
#pragma once

#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/status.h"
#include "manager/admission/draft.h"
#include "manager/admission/driver_step.h"
#include "plugins/placement/admission_options.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

class Plugins;

/// The steps between a demand and a plan that only has to be committed. What each step saw and how
/// long it took stands in the draft's explanation, also of the step that failed.
///
/// Threads: any, if no two threads share a draft; waits for plugins.
class Planner {
 public:
  /// How what a container asks for differs from what it was placed for.
  struct Difference {
    bool asks = false;                     ///< plugins are to be asked again
    std::vector<std::string> when_remade;  ///< requests that can only grow when it is recreated
  };

  /// The references outlive the planner.
  Planner(Plugins& plugins, const Machine& machine, const Clock& clock,
          const placement::AdmissionOptions& options);

  /// Fills `draft` from its demand; without requests, there is nothing to commit.
  /// Errors: the cause and the cure, for a caller that names pod and container. What plugins gave
  /// until then has to be released: `draft.allocated` says by which.
  Status Plan(Draft& draft) const;

  /// The part of Plan that changes nothing: asks for hints and merges them. Errors: as Plan's.
  Status Align(Draft& draft) const;

  /// Scope pod: aligns what `drafts` need together, as `whole`, whose hint each of them is planned
  /// with. One draft stands for itself. Errors: as Plan's.
  Status AlignTogether(std::vector<Draft>& drafts, Whole& whole) const;

  /// What an admission of `demand` would do with a container that runs by `record`.
  [[nodiscard]] Difference Compare(const checkpoint::ContainerRecord& record,
                                   const placement::ContainerDemand& demand) const;

  /// Errors: kDeadlineExceeded when `deadline` is over before `step`.
  Status CheckTime(Deadline deadline, const std::string& step) const;

 private:
  using Step = Status (Planner::*)(Draft&) const;
  Status Take(Draft& draft, const char* name, Step step) const;
  Status SelectPlugins(Draft& draft) const;
  Status SelectPlugin(Draft& draft, const std::string& name, double amount) const;
  bool KeepsFromRecord(Draft& draft, const std::string& name, double amount) const;
  Status AskDriver(Draft& draft) const;
  Status CheckRequired(Draft& draft) const;
  Status CollectHints(Draft& draft) const;
  Status AskForHints(Draft& draft, HintsByResource& hints) const;
  Status ChooseHint(Draft& draft) const;
  Status Allocate(Draft& draft) const;
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
