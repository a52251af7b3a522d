// Keeps each resource with the time when a plugin last offered it.
#include "manager/publish/known_resources.h"

#include "api/quantity.h"

namespace qrm::manager {

void KnownResources::Recall(const StringMap& amounts, Time now) {
  for (const auto& [name, text] : amounts) {
    const double amount = ParseQuantity(text).value_or(0);
    known_.emplace(name, Known{.resource = {.is_node_resource = true,
                                            .is_scalar_resource = true,
                                            .allocatable = amount,
                                            .capacity = amount},
                               .told_at = now});
  }
}

AllocatableByResource KnownResources::Join(const AllocatableByResource& told, Time now) {
  for (const auto& [name, resource] : told) {
    known_.insert_or_assign(name, Known{.resource = resource, .told_at = now});
  }
  AllocatableByResource joined;
  for (auto entry = known_.begin(); entry != known_.end();) {
    if (now - entry->second.told_at > grace_) {
      entry = known_.erase(entry);
    } else {
      joined.emplace(entry->first, entry->second.resource);
      ++entry;
    }
  }
  return joined;
}

}  // namespace qrm::manager
