// What a plugin says it holds for all containers. What came over a socket is parsed only when
// somebody looks, and only as far as he does, because on a node at rest it is the same in every
// period, and on a busy one nearly so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/pieces.h"
#include "api/base/status.h"
#include "api/pod_set.h"
#include "api/resource.h"
#include "plugins/sdk/calls/content_digest.h"
#include "plugins/sdk/held_list.h"

namespace qrm::calls {

using sdk::HeldAllocation;
using sdk::HeldList;

HeldList ToList(const AllocationByContainer& allocations);

/// One answer to GetResourcesAllocation; copies share it. Threads: any, const.
class HeldAllocations {
 public:
  using Reading = std::shared_ptr<const HeldList>;
  /// Stands for what an answer says, also when the answer is gone.
  struct Identity {
    std::shared_ptr<const void> content;
    Reading list;  ///< of one that was never bytes: the content

    friend bool operator==(const Identity& a, const Identity& b) { return a.content == b.content; }
  };
  /// What the plugin holds for `pods`, or for all when they are null.
  using Reader = std::function<Reading(const PodSet* pods)>;
  /// The pods about which an answer says something else than the one `before` it; one of the two
  /// may say nothing.
  struct Difference {
    std::shared_ptr<const void> before;
    PodSet pods;
  };

  HeldAllocations() : HeldAllocations(std::make_shared<const HeldList>()) {}
  HeldAllocations(const AllocationByContainer& allocations)  // NOLINT(google-explicit-constructor)
      : HeldAllocations(std::make_shared<const HeldList>(ToList(allocations))) {}
  /// An answer that was never bytes: the same one stands for the same answer.
  explicit HeldAllocations(const Reading& reading);
  /// The answer that says `content`.
  HeldAllocations(std::shared_ptr<const void> content, Reader read, Difference difference = {})
      : identity_{std::move(content), nullptr},
        read_(std::move(read)),
        difference_(std::make_shared<const Difference>(std::move(difference))) {}

  /// What the plugin holds. Cost: may be read anew.
  Reading Read() const { return read_(nullptr); }
  /// The same for `pods` only. Cost: theirs, and a glance at each of the others.
  Reading ReadOf(const PodSet& pods) const {
    return pods.empty() ? std::make_shared<const HeldList>() : read_(&pods);
  }
  /// The pods about which it says something else than the answer that `before` stands for; absent
  /// when nobody knows. Cost: of two that were never bytes, a glance at all.
  std::optional<PodSet> PodsUnlike(const Identity& before) const;
  /// The same for answers that say the same; a plugin that repeats itself gives the same one as
  /// long as somebody keeps it.
  const Identity& identity() const { return identity_; }

 private:
  Identity identity_;
  Reader read_;
  std::shared_ptr<const Difference> difference_;
};

/// Reads one plugin's answers to GetResourcesAllocation. Threads: any; one answer at a time is
/// read.
class HeldAllocationsReader {
 public:
  /// The answer whose bytes are `pieces` one after the other. Errors: kInvalidArgument with what
  /// breaks the protocol. Cost: one pass over the bytes, and parsing what the last answer did not
  /// say, in whatever order.
  StatusOr<HeldAllocations> Read(const Pieces& pieces);

 private:
  /// What the last answer said about one pod, or rather its digest.
  struct Said {
    uint64_t digest = 0;
    SharedText pod;

    friend bool operator<(const Said& a, const Said& b) { return a.digest < b.digest; }
  };
  struct Content {
    uint64_t digest = 0;
    std::size_t bytes = 0;

    bool operator==(const Content&) const = default;
  };
  struct Answer;
  struct News;

  News NewsOf(const Answer& answer) const QRM_REQUIRES(mutex_);
  void Remember(News news) QRM_REQUIRES(mutex_);

  mutable Mutex mutex_;
  // Of the last answer that could be read.
  std::shared_ptr<const Content> last_ QRM_GUARDED_BY(mutex_);
  std::vector<Said> said_ QRM_GUARDED_BY(mutex_);  // sorted
};

}  // namespace qrm::calls
