// Keeps resctrl's groups at what the classes need, and leaves those of others alone.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "api/base/status.h"
#include "plugins/rdt/info.h"
#include "plugins/rdt/resctrl.h"
#include "plugins/rdt/schemata.h"

namespace qrm::rdt {

/// What all groups of qrm begin with; every other group belongs to somebody else.
inline constexpr char kGroupPrefix[] = "qrm-";

/// Makes, corrects and removes the groups of qrm. Threads: one at a time.
class GroupKeeper {
 public:
  /// `resctrl` outlives the keeper.
  explicit GroupKeeper(const Resctrl& resctrl) : resctrl_(resctrl) {}

  /// Makes the groups of qrm be `wanted`, from group to schemata, and no others; the root group ""
  /// may be among them. Nothing changes unless all of it can be done.
  /// Errors: kResourceExhausted, before anything is touched, when the groups of all together are
  /// more than the machine keeps apart; those of Resctrl, after which all is as it was.
  Status Keep(const std::map<std::string, Schemata>& wanted, const RdtInfo& info);

  /// How often something that it had made was found gone or changed, and was put back.
  uint64_t repairs() const { return repairs_; }

 private:
  struct Plan;

  Status CheckRoom(const std::map<std::string, Schemata>& wanted,
                   const std::set<std::string>& present, std::size_t most) const;
  StatusOr<Plan> MakePlan(const std::map<std::string, Schemata>& wanted,
                          const std::set<std::string>& present, const RdtInfo& info) const;
  Status Carry(const Plan& plan, const std::map<std::string, Schemata>& wanted,
               const RdtInfo& info) const;
  Status Write(const std::string& group, const Schemata& wanted, const RdtInfo& info) const;

  const Resctrl& resctrl_;
  std::map<std::string, Schemata> kept_;  ///< what the last call made
  uint64_t repairs_ = 0;
};

}  // namespace qrm::rdt
