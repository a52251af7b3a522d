// Converts a driver's answer to its message and back, for the calls and for the SDK's records.
#pragma once

#include "api/base/status.h"
#include "plugins/sdk/compute_driver.h"

namespace cci::v1alpha1 {
class AdmitResponse;
}  // namespace cci::v1alpha1

namespace qrm::sdk {

::cci::v1alpha1::AdmitResponse ToWire(const ComputeGrant& grant);

/// Errors: kInvalidArgument for CPUs that cannot be read or are in two parts, for a grant without
/// exclusive CPUs, and for a set that differs from the union of its parts.
StatusOr<ComputeGrant> FromWire(const ::cci::v1alpha1::AdmitResponse& message);

}  // namespace qrm::sdk
