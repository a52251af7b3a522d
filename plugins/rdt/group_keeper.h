// Keeps resctrl's groups as the classes need them, and does not change other groups.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "api/base/status.h"
#include "plugins/kernel/kernel_values.h"
#include "plugins/rdt/resctrl.h"
#include "plugins/rdt/schemata.h"

namespace qrm::rdt {

/// The prefix of all qrm groups; all other groups belong to other programs.
inline constexpr char kGroupPrefix[] = "qrm-";
/// The root group's name in journals.
inline constexpr char kRootSchemata[] = "resctrl/schemata";

/// Creates, corrects and removes qrm's groups. Threads: one at a time.
class GroupKeeper {
 public:
  /// `resctrl` must outlive the keeper. `journal` has the root group's schemata from before the
  /// first change; empty: they are not restored.
  GroupKeeper(const Resctrl& resctrl, std::string journal);
  ~GroupKeeper();
  GroupKeeper(const GroupKeeper&) = delete;
  GroupKeeper& operator=(const GroupKeeper&) = delete;

  /// Makes qrm's groups equal to `wanted`, which maps groups to schemata and may include the root
  /// group "", which is restored as soon as `wanted` lacks it. All changes are made, or none.
  /// Errors: kResourceExhausted, before any change, if the machine does not support that many
  /// groups; those of Resctrl, after which all changes are undone.
  Status Keep(const std::map<std::string, Schemata>& wanted, const RdtInfo& info);

  /// How often it corrected missing or changed groups.
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

  StatusOr<kernel::KernelValues*> Journal();

  class RootGroup;

  const Resctrl& resctrl_;
  const std::string journal_;
  const std::unique_ptr<RootGroup> root_;
  std::unique_ptr<kernel::KernelValues> values_;  ///< of the root group
  std::map<std::string, Schemata> kept_;          ///< the result of the last call
  uint64_t repairs_ = 0;
};

}  // namespace qrm::rdt
