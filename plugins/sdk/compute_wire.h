// A driver's answer as its message: what the calls and the SDK's own records share.
#pragma once

#include "api/base/status.h"
#include "plugins/sdk/compute_driver.h"

namespace cci::v1alpha1 {
class AdmitResponse;
}  // namespace cci::v1alpha1

namespace qrm::sdk {

::cci::v1alpha1::AdmitResponse ToWire(const ComputeGrant& grant);

/// Errors: kInvalidArgument for CPUs that cannot be read or are in two parts, for none that are
/// exclusive, and for a set that is not its parts together.
StatusOr<ComputeGrant> FromWire(const ::cci::v1alpha1::AdmitResponse& message);

}  // namespace qrm::sdk
