// What a container asks for that needs a permission.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "manager/admission/admission_options.h"
#include "manager/demand/demand_source.h"

namespace qrm::manager {

/// Whether the pod has the annotation that asks qrmd to skip it.
bool WishesToOptOut(const ContainerDemand& demand, const AdmissionOptions& options);

/// OK if the pod's namespace may have what its labels, annotations and `requests` (see AllRequests)
/// ask for. Errors: kPermissionDenied as Permissions::Check; kInvalidArgument for annotations that
/// cannot be read.
Status CheckWishes(const ContainerDemand& demand, const std::map<std::string, double>& requests,
                   const AdmissionOptions& options);

/// OK if the pod's namespace may have the plugins' allocations: a role or QoS class can give more
/// than the annotations ask for. Errors: kPermissionDenied as Permissions::Check.
Status CheckGiven(const ContainerDemand& demand, const AllocationByResource& allocations,
                  const AdmissionOptions& options);

}  // namespace qrm::manager
