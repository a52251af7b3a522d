// What a container asks for that not everybody may have.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/placement/admission_options.h"
#include "plugins/placement/demand.h"

namespace qrm::placement {

/// The wish to be left alone, when the pod has the annotation for it.
bool WishesToOptOut(const ContainerDemand& demand, const AdmissionOptions& options);

/// OK when the pod's namespace may have what its labels, annotations and `requests` (all of them,
/// see AllRequests) ask for. Errors: kPermissionDenied as Permissions::Check; kInvalidArgument for
/// annotations that cannot be read.
Status CheckWishes(const ContainerDemand& demand, const std::map<std::string, double>& requests,
                   const AdmissionOptions& options);

/// OK when the pod's namespace may have what plugins gave: a role or a QoS class may mean more than
/// the annotations say. Errors: kPermissionDenied as Permissions::Check.
Status CheckGiven(const ContainerDemand& demand, const AllocationByResource& allocations,
                  const AdmissionOptions& options);

}  // namespace qrm::placement
