// Where a container's cgroup is, by the path that its runtime gives and by controller.
#pragma once

#include <string>
#include <string_view>

#include "api/base/status.h"

namespace qrm {

/// Where the cgroups of one controller are.
struct CgroupHierarchy {
  std::string root;
  bool is_v1 = false;

  bool operator==(const CgroupHierarchy&) const = default;
};

/// The hierarchy of `controller`, as cgroup v1 calls it ("cpuset", "blkio"), below `cgroup_root`:
/// its own of v1, else that of v2, where it is called `v2_name`.
/// Errors: kFailedPrecondition when no hierarchy has it.
StatusOr<CgroupHierarchy> FindCgroupHierarchy(const std::string& cgroup_root,
                                              std::string_view controller,
                                              std::string_view v2_name);

/// The path below a hierarchy's root, with a slash at its begin, of what a runtime calls
/// "/kubepods/pod1/c1" or, where systemd makes its cgroups, "slice:prefix:name".
std::string CgroupPath(std::string_view cgroups_path);

}  // namespace qrm
