// The types of QoS-class resources that run inside qrmd.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/classes/class_book.h"
#include "manager/classes/class_options.h"

namespace qrm::manager {

/// The names of all types that there is code for.
std::vector<std::string> ClassTypeNames();

/// The types that `options` ask for, but for those of plugins; none while they are switched off.
/// `cgroup_root` is where cgroups are mounted. Errors: kInvalidArgument when a type's own file is
/// wrong, kFailedPrecondition when the machine lacks what a type needs.
StatusOr<ClassBook::Providers> MakeClassProviders(const ClassesOptions& options,
                                                  const std::string& cgroup_root);

}  // namespace qrm::manager
