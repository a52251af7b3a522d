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
  /// Both outlive the step; without `book`, nobody gets a class and no annotation is read.
  ClassStep(const ClassBook* book, const placement::AdmissionOptions& options)
      : book_(book), options_(options) {}

  /// Fills `draft.explanation.classes`: what the container has on record, else what it asks for and
  /// may have, beside those in the draft's state. Errors: those of ChooseClasses and of the types.
  Status Choose(Draft& draft) const;

  /// The same again, where plugins have said since which classes the container gets of those types
  /// of which it asks for none. Errors: the same.
  Status ChooseByPlace(Draft& draft) const;

  /// Adds to `options` what the runtime has to do for `classes`. What a type cannot say now is left
  /// to the next round of the keeper: who has a class keeps it.
  void AddTo(RunOptions& options, const StringMap& classes) const;

 private:
  Status ChooseFor(const StringMap& defaults, const std::string& by, Draft& draft) const;

  const ClassBook* book_;
  const placement::AdmissionOptions& options_;
};

/// Type -> class, as it is recorded.
StringMap ToRecord(const ChosenClasses& classes);

}  // namespace qrm::manager
