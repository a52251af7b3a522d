// Decides the allocations of a container: asks the plugins, merges their hints, checks and commits.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/base/clock.h"
#include "api/base/repeated_lines.h"
#include "api/base/status.h"
#include "manager/admission/class_step.h"
#include "manager/admission/draft.h"
#include "manager/admission/explanation.h"
#include "manager/admission/planner.h"
#include "manager/admission/request_rules.h"
#include "manager/demand/demand_source.h"
#include "manager/runtime/run_options.h"
#include "plugins/placement/admission_options.h"

namespace qrm::checkpoint {
class DecisionLog;
class SharedParts;
}  // namespace qrm::checkpoint

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

class ClassBook;
class Plugins;
class Releaser;
class StateLoop;

/// Receives every decision, on the state loop; must not wait.
using AdmissionListener = std::function<void(const AdmissionEvent&)>;

/// When the container gets its values.
enum class AdmissionMoment {
  kAtCreation,    ///< with the answer, before its first instruction
  kAfterTheFact,  ///< it runs already: the reconciler applies them
  kForResize,     ///< the same, because its requests have changed
  kForReview,     ///< the same, because its compute driver wants to change its CPUs
};

/// Admits single containers or whole pods. Two admissions never interleave, because each runs to
/// its end on the state loop.
///
/// If the pod's spec is known, the first container's admission places all containers, in their
/// start order: all of them in one transaction, or none. The later admissions return the
/// allocations that are recorded by then.
///
/// Threads: the state loop only.
class Admitter {
 public:
  using Moment = AdmissionMoment;

  /// The references outlive the admitter; `listener` may be empty.
  struct Parts {
    StateLoop& state;
    checkpoint::DecisionLog& decisions;
    Plugins& plugins;
    Releaser& releaser;
    const Machine& machine;
    const Clock& clock;
    AdmissionListener listener;
    const ClassBook* classes = nullptr;  ///< null: no container gets a class
  };
  Admitter(Parts parts, placement::AdmissionOptions options);
  ~Admitter();
  Admitter(const Admitter&) = delete;
  Admitter& operator=(const Admitter&) = delete;

  /// What to run the container with; it is durable and published on return. A repeated request is
  /// answered from the state, and plugins are asked again only for changed requests. If they
  /// reject more for a recreated container, it keeps its allocations. A container that no plugin
  /// serves is not recorded. A skipped container asks for nothing, and starts even if plugins
  /// reject that. A new container without CPUs of a plugin is kept off recorded exclusive CPUs, if
  /// that leaves it any.
  /// Errors: one sentence that names pod, container, resource, cause and cure. What plugins
  /// allocated in this call is released, and the checkpoint is unchanged.
  StatusOr<RunOptions> Admit(const placement::ContainerDemand& demand, Moment moment,
                             Deadline deadline);

  /// As Compare of request_rules.h.
  [[nodiscard]] Difference Compare(const checkpoint::ContainerRecord& record,
                                   const placement::ContainerDemand& demand) const {
    return manager::Compare(record, demand, options_, parts_.plugins);
  }
  /// As Lacks of request_rules.h: a repeated admission would ask the plugin of `resource`.
  [[nodiscard]] bool Lacks(const checkpoint::ContainerRecord& record,
                           const std::string& resource) const;
  /// Uses the permissions and the rules of compute drivers in `options` from now on.
  void TakeRules(const placement::AdmissionOptions& options) { options_.TakeRules(options); }
  /// Why the container of `demand`, which Admit left without a record, has no allocation.
  [[nodiscard]] std::string WhySkipped(const placement::ContainerDemand& demand) const;

 private:
  struct Call;

  void ShareNames(placement::ContainerDemand& demand);
  static void AddDrafts(Call& call);
  Status Place(Call& call);
  StatusOr<RunOptions> Decide(Call& call);
  StatusOr<RunOptions> LeaveAlone(Call& call);
  bool GivesOnlyClasses(Call& call, Draft& draft);
  Status AlignPod(Call& call) const;
  Status PlanDraft(Call& call, Draft& draft) const;
  static void Note(Call& call, Draft& draft);
  Status Commit(Call& call);

  StatusOr<RunOptions> Answer(Call& call, Draft& asked);
  StatusOr<RunOptions> Repeat(Call& call, Draft& draft);
  void NoteApplied(const Draft& draft, const StringMap& properties) const;
  RunOptions Skip(const Call& call, Draft& draft, const std::string& reason);
  void KeepOffOwned(const ContainerKey& key, RunOptions& options) const;
  Status Reject(Call& call, Draft& failed, const Status& cause);
  void KeepRejection(Call& call, Draft& failed, const std::string& message,
                     uint64_t equal_ones_before);
  Status RollBack(const Call& call, const Draft& failed, const Status& cause);
  void Keep(Draft& draft, std::optional<std::chrono::nanoseconds> commit);
  void NoteUnknownRole(const Draft& draft);
  AdmissionEvent EventOf(const Call& call, const Draft& draft, AdmissionEvent::Result result) const;
  void Tell(const Call& call, const Draft& draft, AdmissionEvent::Result result) const;

  Parts parts_;
  placement::AdmissionOptions options_;
  const Planner planner_;
  const ClassStep classes_;
  const std::unique_ptr<checkpoint::SharedParts> shared_;  // of the demands
  RepeatedLines rejections_;                               // with the pod's UID
  RepeatedLines unknown_roles_;
};

}  // namespace qrm::manager
