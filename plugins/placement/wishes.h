// What a container asks for that needs a permission.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/placement/admission_options.h"
#include "plugins/placement/demand.h"

namespace qrm::placement {

/// Whether the pod has the annotation that asks qrmd to skip it.
bool WishesToOptOut(const ContainerDemand& demand, const AdmissionOptions& options);

/// OK if the pod's namespace may have what its labels, annotations and `requests` (see AllRequests)
/// ask for. Errors: kPermissionDenied as Permissions::Check; kInvalidArgument for annotations that
/// cannot be read.
Status CheckWishes(const ContainerDemand& demand, const std::map<std::string, double>& requests,
                   const AdmissionOptions& options);

/// The same for one request, by its name and amount, alone.
Status CheckRequest(const ContainerDemand& demand, const std::pair<std::string, double>& request,
                    const AdmissionOptions& options);

/// OK if the pod's namespace may have the plugins' allocations: a role or QoS class can give more
/// than the annotations ask for. Errors: kPermissionDenied as Permissions::Check.
Status CheckGiven(const ContainerDemand& demand, const AllocationByResource& allocations,
                  const AdmissionOptions& options);

}  // namespace qrm::placement
