// The demand of a container after an in-place resize by kubelet.
#pragma once

#include "manager/demand/demand_source.h"

namespace qrm::manager {

/// `demand` with the requests that follow from `told`, the values that kubelet sends the runtime at
/// a resize. The spec in `demand` may be older: kubelet's Pods API and `/pods` show a resize only
/// after the runtime has applied it. CPUs follow from the shares; the memory of a Guaranteed pod is
/// its limit. The spec's amounts stay if `told` has no value for them, if kubelet would write the
/// same values for them, or if `told` has no period and so is not kubelet's.
/// Source: kubelet 1.36, where only updates of the status notify the Pods API's watches.
ContainerDemand ResizedDemand(ContainerDemand demand, const LinuxResources& told);

}  // namespace qrm::manager
