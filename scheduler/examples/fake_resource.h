// The proposal's example: a number that a custom resource offers and annotations request.
#pragma once

#include <memory>

#include "scheduler/cache/handle.h"

namespace qrm::scheduler {

/// The type of the resource; the custom resource `nodefakeresourcestatuses`, whose
/// spec.fakeResource is the capacity of node spec.nodeName; and the annotation with a pod's
/// request, a quantity.
inline constexpr char kFakeResource[] = "fake";
inline constexpr char kFakeStatuses[] = "nodefakeresourcestatuses.v1.fake.qrm.io";
inline constexpr char kFakeRequest[] = "fake.qrm.io/request";

/// Source: KEP-4187, "An Example of a Scheduler Plugin using the Cache Extension".
std::unique_ptr<Handle> MakeFakeHandle();

}  // namespace qrm::scheduler
