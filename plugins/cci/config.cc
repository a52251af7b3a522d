// Reads policies, in the same form as in a pod.
#include "plugins/cci/config.h"

#include <utility>

namespace qrm::cci {

StatusOr<Policies> ParseConfig(const config::Section& file) {
  QRM_RETURN_IF_ERROR(file.AllowKeys({"policies"}));
  Policies policies;
  QRM_ASSIGN_OR_RETURN(const auto sections, file.Children("policies"));
  QRM_ASSIGN_OR_RETURN(const config::Section names, file.Child("policies"));
  for (const auto& [name, section] : sections) {
    StatusOr<ComputeSpec> spec = ReadSpec(section);
    if (!spec.ok()) {
      return names.Error(name, "is not a specification", MessageOf(spec.status()));
    }
    policies.emplace(name, *std::move(spec));
  }
  return policies;
}

}  // namespace qrm::cci
