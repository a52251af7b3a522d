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

/// The types in `options`, except the types of plugins; empty while classes are disabled.
/// `cgroup_root` is the mount point of cgroups. Errors: kInvalidArgument when a type's file is
/// wrong, kFailedPrecondition when the machine lacks what a type needs.
StatusOr<ClassBook::Providers> MakeClassProviders(const ClassesOptions& options,
                                                  const std::string& cgroup_root);

/// Adds qrmd's types that are not in `options` any more, but that containers of `state` have a
/// class of. They have no classes: their values are removed from those containers.
void AddRetiredTypes(const ClassesOptions& options, const std::string& cgroup_root,
                     const checkpoint::NodeState& state, ClassBook::Providers& providers);

}  // namespace qrm::manager
