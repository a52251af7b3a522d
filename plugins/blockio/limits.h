// Computes the cgroup files of a class.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/blockio/config.h"
#include "plugins/blockio/devices.h"
#include "plugins/kernel/cgroup_table.h"

namespace qrm::blockio {

enum class CgroupVersion { kV1, kV2 };

/// The files that this type sets and reads. Source: Linux, Documentation/admin-guide/cgroup-v1/
/// blkio-controller.rst, block/bfq-iosched.rst and cgroup-v2.rst.
const std::vector<kernel::CgroupFile>& FilesOf(CgroupVersion version);

/// The values of `config` for the current devices, as the kernel shows them. A glob without a
/// device has no effect; of a disk and its partitions, it means the disk. Errors:
/// kFailedPrecondition for a partition without its disk, for a file that is not a block device, and
/// for the weight of a device without weights.
StatusOr<kernel::CgroupTable> TableOf(const ClassConfig& config, const Devices& devices,
                                      CgroupVersion version);

/// The globs of `config` if no device matches any of them; else empty.
std::string UnmatchedGlobs(const ClassConfig& config, const Devices& devices);

/// The values that every runtime can write at creation: file -> line. Files with several lines are
/// left out: runc 1.1 writes them at once, but the kernel accepts one device per write. Source: OCI
/// runtime specification, "unified"; runc 1.1.5, setUnified.
StringMap UnifiedOf(const kernel::CgroupTable& table);

}  // namespace qrm::blockio
