// What a plugin says it holds for all containers. What came over a socket is parsed only when
// somebody looks, because on a node at rest it is the same in every period.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "api/base/mutex.h"
#include "api/base/pieces.h"
#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/sdk/held_list.h"

namespace qrm::calls {

using sdk::HeldAllocation;
using sdk::HeldList;

HeldList ToList(const AllocationByContainer& allocations);

/// One answer to GetResourcesAllocation; copies share it. Threads: any, const.
class HeldAllocations {
 public:
  using Reading = std::shared_ptr<const HeldList>;

  HeldAllocations() : HeldAllocations(std::make_shared<const HeldList>()) {}
  HeldAllocations(const AllocationByContainer& allocations)  // NOLINT(google-explicit-constructor)
      : HeldAllocations(std::make_shared<const HeldList>(ToList(allocations))) {}
  /// An answer that was never bytes: the same one stands for the same answer.
  explicit HeldAllocations(const Reading& reading)
      : HeldAllocations(reading, [reading] { return reading; }) {}
  /// The answer that `identity` stands for; `read` returns what it says.
  HeldAllocations(std::shared_ptr<const void> identity, std::function<Reading()> read)
      : identity_(std::move(identity)), read_(std::move(read)) {}

  /// What the plugin holds. Cost: may be read anew.
  Reading Read() const { return read_(); }
  /// The same for answers that say the same; a plugin that repeats itself gives the same one as
  /// long as somebody keeps it.
  const std::shared_ptr<const void>& identity() const { return identity_; }

 private:
  std::shared_ptr<const void> identity_;
  std::function<Reading()> read_;
};

/// Reads one plugin's answers to GetResourcesAllocation. Threads: any.
class HeldAllocationsReader {
 public:
  /// The answer whose bytes are `pieces` one after the other. Errors: kInvalidArgument with what
  /// breaks the protocol. Cost: one pass over the bytes when it says what the last one said, in
  /// whatever order.
  StatusOr<HeldAllocations> Read(const Pieces& pieces);

 private:
  struct Content {
    uint64_t digest = 0;
    std::size_t bytes = 0;
    bool operator==(const Content&) const = default;
  };
  using Identity = std::shared_ptr<const Content>;

  Identity Last() const;

  mutable Mutex mutex_;
  Identity last_ QRM_GUARDED_BY(mutex_);  ///< of the last answer that could be read
};

}  // namespace qrm::calls
