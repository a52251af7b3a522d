// What a container asks for once kubelet resizes it in place.
#pragma once

#include "manager/demand/demand_source.h"

namespace qrm::manager {

/// `demand` with the requests behind `told`, the values that kubelet gives the runtime at a resize:
/// a spec may be older, for kubelet's Pods API and `/pods` show a resize after the runtime has
/// carried it out. CPUs are those of the shares; memory, of a Guaranteed pod, is the limit. Values
/// without a period are not kubelet's where there is a spec, and those of which it gives none stay
/// as the spec has them; so do those that kubelet would write for the spec.
/// Source: kubelet 1.36, where only updates of the status notify the Pods API's watches.
placement::ContainerDemand ResizedDemand(placement::ContainerDemand demand,
                                         const LinuxResources& told);

}  // namespace qrm::manager
