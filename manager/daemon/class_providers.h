// The types of QoS-class resources that run inside qrmd.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "checkpoint/node_state.h"
#include "manager/classes/class_book.h"
#include "manager/classes/class_options.h"

namespace qrm::manager {

/// The names of all types that qrmd implements.
std::vector<std::string> ClassTypeNames();

/// Where types find and keep what they need.
struct ClassPaths {
  std::string cgroup_root;  ///< the mount point of cgroups
  std::string state_dir;    ///< for journals; empty: none
};

/// The types in `options`, except the types of plugins; empty while classes are disabled. Errors:
/// kInvalidArgument when a type's file is wrong, kFailedPrecondition when the machine lacks what a
/// type needs.
StatusOr<ClassBook::Providers> MakeClassProviders(const ClassesOptions& options,
                                                  const ClassPaths& paths);

/// Adds qrmd's types that are not in `options` any more, but that containers of `state`, or groups
/// of resctrl, are left of. They have no classes: their values and groups are removed.
void AddRetiredTypes(const ClassesOptions& options, const ClassPaths& paths,
                     const checkpoint::NodeState& state, ClassBook::Providers& providers);

}  // namespace qrm::manager
