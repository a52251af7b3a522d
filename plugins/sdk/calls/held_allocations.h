// What a plugin says it holds for all containers. It is parsed only when somebody looks, because on
// a node at rest it is the same in every period.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "api/base/mutex.h"
#include "api/base/pieces.h"
#include "api/base/status.h"
#include "api/resource.h"

namespace qrm::calls {

/// One answer to GetResourcesAllocation; copies share it. Threads: any, const.
class HeldAllocations {
 public:
  using Reading = std::shared_ptr<const AllocationByContainer>;

  HeldAllocations() : HeldAllocations(AllocationByContainer()) {}
  HeldAllocations(AllocationByContainer allocations)  // NOLINT(google-explicit-constructor)
      : HeldAllocations(std::make_shared<const AllocationByContainer>(std::move(allocations))) {}
  /// The answer that `identity` stands for; `read` returns what it says.
  HeldAllocations(std::shared_ptr<const void> identity, std::function<Reading()> read)
      : identity_(std::move(identity)), read_(std::move(read)) {}

  /// What the plugin holds. Cost: may be read anew.
  Reading Read() const { return read_(); }
  /// The same for answers that say the same; a plugin that repeats itself gives the same one as
  /// long as somebody keeps it.
  const std::shared_ptr<const void>& identity() const { return identity_; }

 private:
  explicit HeldAllocations(const Reading& reading)
      : HeldAllocations(reading, [reading] { return reading; }) {}

  std::shared_ptr<const void> identity_;
  std::function<Reading()> read_;
};

/// Reads one plugin's answers to GetResourcesAllocation. Threads: any.
class HeldAllocationsReader {
 public:
  /// The answer whose bytes are `pieces` one after the other. Errors: kInvalidArgument with what
  /// breaks the protocol. Cost: a comparison when the answer is the last one's repetition.
  StatusOr<HeldAllocations> Read(const Pieces& pieces);

  /// The same for an answer of a plugin inside this process, which gives the same `bytes` as long
  /// as it says the same.
  StatusOr<HeldAllocations> ReadShared(std::shared_ptr<const std::string> bytes);

 private:
  using Bytes = std::shared_ptr<const std::string>;

  Bytes Last() const;
  static HeldAllocations Repeat(const Bytes& last);
  StatusOr<HeldAllocations> ReadNew(Bytes bytes);

  mutable Mutex mutex_;
  Bytes last_ QRM_GUARDED_BY(mutex_);  ///< of the last answer that could be read
};

}  // namespace qrm::calls
