// Decides what a container gets: asks the plugins, merges their hints, checks and commits the
// result.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/base/clock.h"
#include "api/base/repeated_lines.h"
#include "api/base/status.h"
#include "manager/admission/admission_event.h"
#include "manager/admission/class_step.h"
#include "manager/admission/draft.h"
#include "manager/admission/planner.h"
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

/// Told of every decision, on the state loop; must not wait.
using AdmissionListener = std::function<void(const AdmissionEvent&)>;

/// When the container gets the values.
enum class AdmissionMoment {
  kAtCreation,    ///< with the answer, before its first instruction
  kAfterTheFact,  ///< it runs already: the reconciler applies them
};

/// The walk of one container, or of a whole pod. Nothing of two admissions interleaves, because
/// each runs to its end on the state loop.
///
/// A pod whose spec is known is placed when its first container is: all its containers in the order
/// in which they start, in one transaction, or none. Each of the later ones is answered with the
/// place that is reserved for it.
///
/// Threads: the state loop only.
class Admitter {
 public:
  using Moment = AdmissionMoment;

  /// What is referred to outlives the admitter; `listener` may be empty.
  struct Parts {
    StateLoop& state;
    checkpoint::DecisionLog& decisions;
    Plugins& plugins;
    Releaser& releaser;
    const Machine& machine;
    const Clock& clock;
    AdmissionListener listener;
    const ClassBook* classes = nullptr;  ///< null: nobody gets a class
  };
  Admitter(Parts parts, placement::AdmissionOptions options);
  ~Admitter();
  Admitter(const Admitter&) = delete;
  Admitter& operator=(const Admitter&) = delete;

  /// What to run the container with; it is durable and published then. A repeated request is
  /// answered from the state, and plugins are asked again only for what changed: a container that
  /// is recreated gets at least what it has, where they refuse more. One that no plugin serves is
  /// not recorded. One that is to be left alone asks for nothing; it starts also where plugins
  /// refuse even that. One that is created and gets no CPUs from a plugin is kept off those that
  /// others own on record, where that leaves it any.
  /// Errors: one sentence that names pod, container, resource, cause and cure. All that plugins
  /// gave for this call is released, and the checkpoint is as before.
  StatusOr<RunOptions> Admit(const placement::ContainerDemand& demand, Moment moment,
                             Deadline deadline);

  /// As Planner::Compare.
  [[nodiscard]] Planner::Difference Compare(const checkpoint::ContainerRecord& record,
                                            const placement::ContainerDemand& demand) const {
    return planner_.Compare(record, demand);
  }
  /// As the rule of that name: a repeated admission would ask the plugin of `resource`.
  [[nodiscard]] bool Lacks(const checkpoint::ContainerRecord& record,
                           const std::string& resource) const;

 private:
  struct Call;

  void ShareNames(placement::ContainerDemand& demand);
  static void AddDrafts(Call& call);
  Status Place(Call& call);
  StatusOr<RunOptions> Decide(Call& call);
  RunOptions LeaveAlone(Call& call);
  Status AlignPod(Call& call) const;
  Status PlanDraft(const Call& call, Draft& draft) const;
  static void Note(Call& call, Draft& draft);
  Status Commit(Call& call);

  StatusOr<RunOptions> Answer(Call& call, Draft& asked);
  StatusOr<RunOptions> Repeat(Call& call, Draft& draft);
  StatusOr<RunOptions> KeepPlace(Call& call, const Status& cause);
  void NoteApplied(const Draft& draft, const StringMap& properties) const;
  RunOptions Skip(const Call& call, Draft& draft, const std::string& reason);
  void KeepOffOwned(const ContainerKey& key, RunOptions& options) const;
  Status Reject(Call& call, Draft& failed, const Status& cause);
  void KeepRejection(Call& call, Draft& failed, const std::string& message,
                     uint64_t equal_ones_before);
  Status RollBack(const Call& call, const Draft& failed, const Status& cause);
  void Keep(Draft& draft, std::optional<std::chrono::nanoseconds> commit);
  AdmissionEvent EventOf(const Call& call, const Draft& draft, AdmissionEvent::Result result) const;
  void Tell(const Call& call, const Draft& draft, AdmissionEvent::Result result) const;

  Parts parts_;
  const placement::AdmissionOptions options_;
  const Planner planner_;
  const ClassStep classes_;
  const std::unique_ptr<checkpoint::SharedParts> shared_;  // of what was asked
  RepeatedLines rejections_;                               // with the pod's UID
};

}  // namespace qrm::manager
