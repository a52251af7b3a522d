// The rules of the configuration: which containers go where, the first that fits.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/rules/select.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::cpu {

/// One rule: the containers that it speaks of, and what they get.
struct Rule {
  enum class Target {
    kPool,   ///< the shared CPUs of the pool `name`
    kGrant,  ///< CPUs of their own, as the grant `name` says
    kAlone,  ///< nothing: their CPUs are not touched
  };

  rules::Selector select;
  Target target = Target::kAlone;
  std::string name;
  std::string place;  ///< "rules[2] (cpu.yaml:14)", for people

  bool operator==(const Rule&) const = default;
};

/// The list `rules`, in its order; whether what they name exists is for the caller to see. Errors:
/// kInvalidArgument with file, line, key, value and what is allowed.
StatusOr<std::vector<Rule>> ParseRules(const config::Section& section);

}  // namespace qrm::cpu
