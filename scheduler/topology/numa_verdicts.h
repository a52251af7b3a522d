// Judgements of NUMA nodes that are kept, so that equal nodes are judged once for equal pods.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "plugins/placement/walk.h"
#include "scheduler/cache/objects.h"

namespace qrm::scheduler {

/// What nodes say to a pod.
struct Verdict {
  std::string refusal;       ///< empty: it fits
  std::optional<int> score;  ///< as ExtendedResource::Score
};

/// A pod that nodes are asked about, the same object for all pods that no node can tell apart.
using Question = std::shared_ptr<const Pod>;

/// The latest questions. Threads: any.
class Questions {
 public:
  static constexpr std::size_t kKept = 8;

  Question Of(const Pod& pod);

 private:
  Mutex mutex_;
  std::vector<Question> latest_ QRM_GUARDED_BY(mutex_);  // the newest first
};

/// What equal nodes have said to the latest questions. Threads: any.
class Verdicts {
 public:
  /// What was said to `question`; else what `judge` says, which two may be asked at once.
  Verdict Of(const Question& question, const std::function<Verdict()>& judge);

 private:
  struct Said {
    Question question;
    Verdict verdict;
  };

  Mutex mutex_;
  std::vector<Said> latest_ QRM_GUARDED_BY(mutex_);  // the newest first
};

/// The verdicts of nodes of one configuration by what is held there. Threads: any.
class VerdictsByHoldings {
 public:
  /// The same object for holdings that a pod of neither of them cannot tell apart.
  /// Cost: O(holdings).
  std::shared_ptr<Verdicts> Of(const placement::NodeHoldings& holdings);

 private:
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<Verdicts>> by_shape_ QRM_GUARDED_BY(mutex_);
  std::size_t sweep_at_ QRM_GUARDED_BY(mutex_) = 64;  // shapes, at which unused ones go
};

}  // namespace qrm::scheduler
