// A driver's answer as its message: what the calls and the SDK's own records share.
#pragma once

#include "api/base/status.h"
#include "api/proto/cci/v1alpha1/cci.pb.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::sdk {

::cci::v1alpha1::AdmitResponse ToWire(const ComputeGrant& grant);

/// Errors: kInvalidArgument for CPUs that cannot be read or are in two parts, for none at all, for
/// a set that is not its parts together, and for CPUs that are not exclusive.
StatusOr<ComputeGrant> FromWire(const ::cci::v1alpha1::AdmitResponse& message);

}  // namespace qrm::sdk
