// The rules of the configuration: the first rule that fits a container decides where it goes.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/placement/select.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::cpu {

/// One rule: the containers that it selects, and their target.
struct Rule {
  enum class Target {
    kPool,   ///< the shared CPUs of the pool `name`
    kGrant,  ///< exclusive CPUs, as the grant `name` says
    kAlone,  ///< nothing: their CPUs are not changed
  };

  placement::Selector select;
  Target target = Target::kAlone;
  std::string name;
  std::string place;  ///< "rules[2] (cpu.yaml:14)", for people

  bool operator==(const Rule&) const = default;
};

/// The list `rules`, in its order. The caller checks that the targets exist. Errors:
/// kInvalidArgument with file, line, key, value and the allowed values.
StatusOr<std::vector<Rule>> ParseRules(const config::Section& section);

}  // namespace qrm::cpu
