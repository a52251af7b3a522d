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

  /// Fills `draft.explanation.classes` and `draft.class_options`: the container's recorded classes,
  /// else those that it asks for and may have, given the draft's state. Errors: those of
  /// ChooseClasses and of the types.
  Status Choose(Draft& draft) const;

  /// The same with the default classes that the plugins' allocations bring, for types without a
  /// request of the container. Errors: the same.
  Status ChooseByPlace(Draft& draft) const;

  /// OK if all containers that the class keys of `demand`'s pod name are `demand` or in `others`;
  /// also while not all containers of the pod are known. Errors: kInvalidArgument.
  Status CheckContainers(const placement::ContainerDemand& demand,
                         const std::vector<placement::ContainerDemand>& others) const;

  /// What the runtime has to set for the recorded `classes`. If a type cannot be resolved now, the
  /// keeper's next round sets its class: a recorded class stays.
  sdk::ClassOptions Resolve(const StringMap& classes) const;

 private:
  Status ChooseFor(const StringMap& defaults, const std::string& by, Draft& draft) const;

  const ClassBook* book_;
  const placement::AdmissionOptions& options_;
};

}  // namespace qrm::manager
