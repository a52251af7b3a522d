// The type "rdt" of QoS-class resources: parts of caches and of memory bandwidth, through resctrl.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "plugins/rdt/config.h"
#include "plugins/rdt/group_keeper.h"
#include "plugins/rdt/resctrl.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::rdt {

/// Moves every thread of the cgroup `directory` and its descendants to `group`. Repeats this until
/// two checks in a row find no other thread, the second one by the threads' own files. A fork
/// copies its parent's group before the child is visible. A container that forks too fast is frozen
/// for the rest. Cost: one small file read per thread. Errors: kUnavailable, with the number of
/// threads still elsewhere; kNotFound when the cgroup is gone; those of Resctrl. Source: Linux
/// Documentation/filesystems/resctrl.rst, "Resource allocation rules".
Status MoveAll(const Resctrl& resctrl, const std::string& directory, const std::string& group);

/// Empty if every thread is in `group`, else a sentence about the other threads. Errors: kNotFound
/// when the cgroup is gone; those of Resctrl.
StatusOr<std::string> FindElsewhere(const Resctrl& resctrl, const std::string& directory,
                                    const std::string& group);

/// The group's name in messages.
std::string NameOfGroup(const std::string& group);

inline constexpr char kTypeName[] = "rdt";

struct RdtSettings {
  /// Partitions and classes, in goresctrl's format; read again at each Refresh. Empty: the classes
  /// are the existing groups, which the runtime creates and qrm never changes.
  std::string config_file;
  ResctrlPaths paths;
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string etc = "/etc";  ///< the directory of the runtimes' configuration
  std::string journal;       ///< the file of the root group's former schemata; empty: none
};

/// Keeps a resctrl group for each class, from the first Refresh on. The runtime creates containers
/// in their group, or they are moved there, thread by thread.
class RdtClasses final : public sdk::ClassProvider {
 public:
  explicit RdtClasses(RdtSettings settings);

  [[nodiscard]] sdk::ClassType List() const override;
  [[nodiscard]] StatusOr<sdk::ClassOptions> Resolve(const std::string& class_name) const override;
  Status Refresh(const std::set<std::string>& in_use) override;
  Status Apply(const sdk::ClassTarget& target, const std::string& from,
               const std::string& to) override;
  [[nodiscard]] StatusOr<std::string> ReadBack(const sdk::ClassTarget& target,
                                               const std::string& class_name) override;
  [[nodiscard]] std::vector<sdk::ClassReading> Readings() override;

 private:
  [[nodiscard]] bool IsRuntimes() const { return settings_.config_file.empty(); }
  StatusOr<RdtConfig> LoadConfig(const std::set<std::string>& in_use);
  Status FindResctrl();
  Status FollowConfig(const std::set<std::string>& in_use);
  Status FollowRuntime();
  Status Take(const RdtConfig& config);
  StatusOr<std::string> GroupOfClass(const std::string& class_name) const;
  StatusOr<std::string> DirectoryOf(const sdk::ClassTarget& target) const;
  Status MoveTo(const std::string& directory, const std::string& class_name);

  const RdtSettings settings_;
  const Resctrl resctrl_;
  GroupKeeper keeper_;
  RdtInfo info_;
  std::optional<RdtConfig> config_;  ///< in force, or the last that was in force
  bool in_force_ = false;            ///< all groups are as they should be
  bool was_mounted_ = false;
  bool is_away_ = false;  ///< it was mounted, and is not mounted now
  std::string mount_options_;
  uint64_t mounts_ = 0;                             ///< how often it was mounted again
  std::map<std::string, std::string> definitions_;  ///< class -> the kernel's values

  mutable Mutex mutex_;
  sdk::ClassType type_ QRM_GUARDED_BY(mutex_);
};

/// The type on this machine, by the files of `settings`. Without resctrl, the type has no classes.
/// Errors: kInvalidArgument for a `config_file` that cannot be read or has an error.
StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeSystemRdt(RdtSettings settings);

/// Whether resctrl on this machine has groups of this type, or `journal` has a changed root group.
bool IsLeftOnSystem(const std::string& journal);

}  // namespace qrm::rdt
