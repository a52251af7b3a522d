// Finds what records have in common, so that it is in memory once.
#pragma once

#include <map>
#include <string>

#include "api/base/interner.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"

namespace qrm::checkpoint {

/// Most containers of a node are alike: the replicas of one workload, the members of one pool. A
/// part that equals an earlier part is replaced by that part. Parts without users are dropped.
///
/// Threads: one.
class SharedParts {
 public:
  /// All but UID and name, which no other pod has.
  void Share(PodMeta& pod);
  void Share(ContainerRecord& record);
  void Share(SharedText& text);
  void Share(Change& change);

 private:
  using Amounts = std::map<std::string, double>;
  using Origins = std::map<std::string, Origin>;

  void Share(AllocationByResource& allocations);

  Interner<SharedText> texts_;
  Interner<Shared<StringMap>> maps_;
  Interner<Shared<Amounts>> amounts_;
  Interner<Shared<ResourceAllocation>> allocations_;
  Interner<Shared<Origins>> origins_;
};

}  // namespace qrm::checkpoint
