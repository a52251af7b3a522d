// The type blockio: rates and weights of block devices by class.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "plugins/blockio/devices.h"
#include "plugins/blockio/limits.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::blockio {

inline constexpr char kType[] = "blockio";

struct ProviderOptions {
  std::string config_file;  ///< in goresctrl's syntax; read again when it changes
  std::string blkio_root;   ///< the hierarchy that has the controller
  CgroupVersion version = CgroupVersion::kV1;
  /// A class whose globs match no device has a problem; else it is given, and logged.
  bool require_devices = false;
};

/// The classes of `options.config_file` for the current devices. In cgroup v2, the runtime sets
/// them at creation. The OCI specification has no field for them in v1, so there Apply writes them
/// before the first instruction. On running containers, Apply writes the cgroup's files. A class
/// that is not possible (see TableOf) has a problem; the others are not affected. Errors:
/// kInvalidArgument for a file that cannot be read or has an error.
StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeBlockioProvider(ProviderOptions options,
                                                                  std::unique_ptr<Devices> devices);

/// The same for this machine, whose cgroups are below `cgroup_root`. Errors: also
/// kFailedPrecondition without the controller.
StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeSystemBlockio(const std::string& config_file,
                                                                const std::string& cgroup_root,
                                                                bool require_devices);

}  // namespace qrm::blockio
