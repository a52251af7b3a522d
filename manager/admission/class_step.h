// The step of an admission that decides the container's QoS classes.
#pragma once

#include "api/base/status.h"
#include "manager/admission/draft.h"
#include "plugins/placement/admission_options.h"

namespace qrm::manager {

class ClassBook;

/// Threads: any, if no two threads share a draft; waits for nothing.
class ClassStep {
 public:
  /// Both outlive the step; without `book`, no container gets a class and no annotation is read.
  ClassStep(const ClassBook* book, const placement::AdmissionOptions& options)
      : book_(book), options_(options) {}

  /// Fills `draft.explanation.classes`: the container's recorded classes, else those that it asks
  /// for and may have, given the draft's state. Errors: those of ChooseClasses and of the types.
  Status Choose(Draft& draft) const;

  /// The same with the default classes that the plugins' allocations bring, for types without a
  /// request of the container. Errors: the same.
  Status ChooseByPlace(Draft& draft) const;

  /// OK if the pod of `demand`, which is skipped, may ask for the classes that it names: a runtime
  /// could read them. Errors: as CheckMayAsk of class_choice.h.
  Status CheckSkipped(const placement::ContainerDemand& demand) const;

  /// Adds to `options` what the runtime has to set for `classes`. If a type cannot be resolved now,
  /// the keeper's next round sets its class: a recorded class stays.
  void AddTo(RunOptions& options, const StringMap& classes) const;

 private:
  Status ChooseFor(const StringMap& defaults, const std::string& by, Draft& draft) const;

  const ClassBook* book_;
  const placement::AdmissionOptions& options_;
};

/// Type -> class, as it is recorded.
StringMap ToRecord(const ChosenClasses& classes);

}  // namespace qrm::manager
