// Writes a container's CPUs to its cgroup, beside the runtime.
#pragma once

#include "api/base/status.h"
#include "api/id_set.h"
#include "manager/runtime/cgroup_reader.h"

namespace qrm::manager {

/// Writes `cpus` to the cgroup that `at` was read from. Succeeds if the cgroup is gone. Cost: some
/// 0.05 ms in the kernel. Errors: kPermissionDenied where cgroups cannot be written,
/// kFailedPrecondition for CPUs that the kernel rejects.
/// Source: cpuset(7); Linux Documentation/admin-guide/cgroup-v2.rst, "Cpuset".
Status WriteCpus(const CgroupCpuset& at, const CpuSet& cpus);

}  // namespace qrm::manager
