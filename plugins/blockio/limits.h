// What a class means for cgroup files: pure computation.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/blockio/config.h"
#include "plugins/blockio/devices.h"
#include "plugins/cgroup/cgroup_table.h"

namespace qrm::blockio {

enum class CgroupVersion { kV1, kV2 };

/// The files that this type sets and reads. Source: Linux, Documentation/admin-guide/cgroup-v1/
/// blkio-controller.rst, block/bfq-iosched.rst and cgroup-v2.rst.
const std::vector<cgroup::CgroupFile>& FilesOf(CgroupVersion version);

/// What `config` says for the devices that are there now, as the kernel shows it. A glob without a
/// device says nothing.
/// Errors: kFailedPrecondition for a partition, for what is no block device, and for the weight of
/// a device that nothing weighs.
StatusOr<cgroup::CgroupTable> TableOf(const ClassConfig& config, const Devices& devices,
                                      CgroupVersion version);

/// Of these, what every runtime can write at creation: file -> its line. Files of several lines are
/// left out, since runc 1.1 writes them at once and the kernel takes one device at a time.
/// Source: OCI runtime specification, "unified"; runc 1.1.5, setUnified.
StringMap UnifiedOf(const cgroup::CgroupTable& table);

}  // namespace qrm::blockio
