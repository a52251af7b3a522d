// The compute drivers of a node: which are ready, and the namespaces that may use them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/placement/permissions.h"

namespace qrm::scheduler {

/// Of a Node; qrmd writes it with `publish: [drivers]`.
inline constexpr char kNodeDrivers[] = "qrm.io/compute-drivers";

/// One driver of a node.
struct OfferedDriver {
  std::string state;                    ///< "ready", "not running" or "fallback"
  std::vector<std::string> namespaces;  ///< globs: those may ask for it, whatever permissions say
};

/// All that kNodeDrivers says.
struct DriverOffer {
  std::map<std::string, OfferedDriver> drivers;  ///< by name
  placement::Permissions permissions;            ///< about drivers only

  /// Whether pods of `pod_namespace` may ask for driver `name`, which is `offered`.
  bool MayAsk(const std::string& pod_namespace, const std::string& name,
              const OfferedDriver& offered) const;
};

/// Reads the annotation. Where it does not say who may ask, as an older qrmd writes it, all may.
/// Errors: kInvalidArgument when it has not the form that qrmd writes.
StatusOr<DriverOffer> ReadDriverOffer(const std::string& text);

}  // namespace qrm::scheduler
