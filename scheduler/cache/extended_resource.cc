// What a resource does that decides and prefers nothing.
#include "scheduler/cache/extended_resource.h"

namespace qrm::scheduler {

std::optional<int> ExtendedResource::Score(const Pod& /*pod*/) const {
  return std::nullopt;
}

StatusOr<StringMap> ExtendedResource::Decide(const Pod& /*pod*/) const {
  return StringMap();
}

}  // namespace qrm::scheduler
