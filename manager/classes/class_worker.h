// Applies the classes of one type to their containers, and corrects drift.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/resource.h"
#include "checkpoint/decision_trace.h"
#include "manager/classes/class_choice.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::manager {

/// A container (or pod) and the class that it should have; an empty name: none.
struct WantedClass {
  sdk::ClassTarget target;
  std::string name;
  std::string lost;   ///< the class on record, which does not exist any more: it is removed
  std::string asked;  ///< the class of its annotation, of which nothing is on record yet
  std::string by;     ///< that annotation; without `asked`: why it asks for no class

  bool operator==(const WantedClass&) const = default;
};
using WantedClasses = std::map<ContainerKey, WantedClass>;

/// Calls one provider, and remembers the class that each target has.
///
/// Threads: one at a time, which may wait for the kernel; GetWork any.
class ClassWorker {
 public:
  /// `provider` outlives the worker. `note` gets each new problem of a container.
  explicit ClassWorker(
      sdk::ClassProvider& provider,
      checkpoint::NoteEvent note = [](const checkpoint::NodeEvent&) {})
      : provider_(provider), note_(std::move(note)) {}

  /// Has the provider look at the machine; see ClassProvider::Refresh. A new error is logged once.
  void Refresh(const std::set<std::string>& in_use);

  /// Changes `wanted.target` from its present class to the wanted one. Errors: the provider's; OK
  /// if the target is gone.
  Status Give(const WantedClass& wanted);

  /// Checks every target in `all`: sets missing values, corrects drift, and releases targets that
  /// are not in `all` any more. Failures are retried in the next round; a new failure is logged
  /// once.
  void Round(const WantedClasses& all);

  /// The container lacks the class that it asks for; an empty `problem`: it does not. Threads: any.
  void Report(const ContainerKey& key, const std::string& problem);

  ClassWork GetWork() const;
  /// What the container lacks of its class; empty: nothing. Threads: any.
  std::string ProblemOf(const ContainerKey& key) const;

 private:
  Status Keep(const ContainerKey& key, const WantedClass& wanted);
  void ReleaseGone(const WantedClasses& all);
  void ForgetProblems(const WantedClasses& all);
  /// `reset` is what became of the values of its lost class.
  std::string LossOf(const ContainerKey& key, const WantedClass& wanted, const Status& reset) const;
  void NoteLeft(const ContainerKey& key, const std::string& lost, const Status& reset);
  StatusOr<std::string> ReadBack(const WantedClass& wanted);

  sdk::ClassProvider& provider_;
  const checkpoint::NoteEvent note_;
  const std::string type_ = provider_.List().name;
  std::map<ContainerKey, WantedClass> held_;  // the classes that were applied
  mutable Mutex mutex_;
  uint64_t repairs_ QRM_GUARDED_BY(mutex_) = 0;
  std::map<ContainerKey, std::string> problems_ QRM_GUARDED_BY(mutex_);  // no key: of the type
  std::vector<sdk::ClassReading> readings_ QRM_GUARDED_BY(mutex_);
  std::map<ContainerKey, LeftClass> left_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
