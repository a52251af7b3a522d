// Selects pods by their labels, as kubectl does.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"

namespace qrm::manager::cli {

/// Requirements that labels meet together; none is met by all labels.
class LabelSelector {
 public:
  /// "app=web,tier!=db,env in (test,live),!canary". Errors: kInvalidArgument with the part that is
  /// not a requirement.
  /// Source: Kubernetes, "Labels and Selectors".
  static StatusOr<LabelSelector> Parse(const std::string& text);

  /// A key that is not there meets `!=` and `notin`.
  bool Matches(const StringMap& labels) const;

 private:
  struct Requirement {
    std::string key;
    bool is_any = false;              ///< whether it is there, with any value
    std::vector<std::string> values;  ///< one of these
    bool negated = false;
  };

  static StatusOr<Requirement> ParseOne(const std::string& text);

  std::vector<Requirement> requirements_;
};

}  // namespace qrm::manager::cli
