// Which containers a compute driver places, as annotations and the operator's rules say.
#pragma once

#include <optional>
#include <string>

#include "api/base/status.h"
#include "manager/demand/demand_source.h"
#include "plugins/placement/driver_options.h"

namespace qrm::manager {

/// The driver of one container.
struct DriverChoice {
  std::string name;
  std::string spec;
  std::string by;            ///< what chose it: "annotation cci.qrm.io/driver=fast"
  bool by_operator = false;  ///< the pod did not ask: a default of the node

  bool operator==(const DriverChoice&) const = default;
};

/// The driver of `demand`, which requests `cpus` CPUs. A container's own annotations win over its
/// pod's:
///   driver.cci.qrm.io/container.NAME, spec.cci.qrm.io/container.NAME
///   cci.qrm.io/driver, cci.qrm.io/spec
/// and these over the operator's defaults by runtime class and namespace, in this order. An empty
/// driver is none. Pods' keys and defaults are for main containers that request CPUs.
/// Errors: kInvalidArgument for an impossible name, a spec that is too long, and a container of its
/// own key that requests no CPU.
StatusOr<std::optional<DriverChoice>> ChooseDriver(const placement::ContainerDemand& demand,
                                                   double cpus,
                                                   const placement::DriverOptions& options);

/// Whether the rules of `driver` let pods of `pod_namespace` ask for it.
bool IsOpenTo(const placement::DriverOptions& options, const std::string& driver,
              const std::string& pod_namespace);

/// The driver's record among `allocations`: its resource name; empty when there is none.
std::string DriverOf(const AllocationByResource& allocations);

}  // namespace qrm::manager
