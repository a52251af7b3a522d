// Chooses the compute driver of a container by annotations and the operator's rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/placement/demand.h"
#include "plugins/placement/driver_options.h"

namespace qrm::manager {

/// The driver of one container.
struct DriverChoice {
  std::string name;
  std::string spec;
  std::string by;            ///< the reason for the choice: "annotation cci.qrm.io/driver=fast"
  bool by_operator = false;  ///< by the default of the pod's namespace, not by the pod

  bool operator==(const DriverChoice&) const = default;
};

/// The driver of `demand`, which requests `cpus` CPUs. In order of precedence:
///   driver.cci.qrm.io/container.NAME, spec.cci.qrm.io/container.NAME
///   cci.qrm.io/driver, cci.qrm.io/spec
///   the operator's defaults by runtime class, which needs a permission, then by namespace
/// An empty name means no driver. The pod's annotations and the defaults apply to all app
/// containers that request CPUs.
/// Errors: kInvalidArgument for an invalid name, a spec that is too long, and a container
/// annotation on a container that requests no CPU.
StatusOr<std::optional<DriverChoice>> ChooseDriver(const placement::ContainerDemand& demand,
                                                   double cpus,
                                                   const placement::DriverOptions& options);

/// The driver that has placed the container of `demand` under the resource name `resource`, with
/// the container's current spec. Errors: kInvalidArgument for a spec that is too long.
StatusOr<DriverChoice> RecordedChoice(const placement::ContainerDemand& demand,
                                      const std::string& resource,
                                      const placement::DriverOptions& options);

/// The drivers that `annotations` ask for, for whichever container, without specs.
std::vector<DriverChoice> DriversAskedFor(const StringMap& annotations);

/// Whether the rules of `driver` allow pods of `pod_namespace` to ask for it.
bool IsOpenTo(const placement::DriverOptions& options, const std::string& driver,
              const std::string& pod_namespace);

/// The resource name of the driver's record in `allocations`; empty if there is none.
std::string DriverOf(const AllocationByResource& allocations);

}  // namespace qrm::manager
