// The calls to a compute driver: cci.v1alpha1.CCIDriver.
#pragma once

#include <vector>

#include "plugins/sdk/calls/call.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::calls {

/// Decides the CPUs of one container. A rejection in `err` is kFailedPrecondition.
struct ComputeAdmit {
  static constexpr Method kMethod{"/cci.v1alpha1.CCIDriver/cciAdmit", "get CPUs of"};
  using Request = sdk::ComputeRequest;
  using Answer = sdk::ComputeGrant;
};

/// The NUMA nodes that could serve the request.
struct ComputeHints {
  static constexpr Method kMethod{"/cci.v1alpha1.CCIDriver/cciHints", "get hints of"};
  using Request = sdk::ComputeRequest;
  using Answer = HintList;
};

struct ComputeAdd {
  static constexpr Method kMethod{"/cci.v1alpha1.CCIDriver/cciAddContainerResource",
                                  "prepare a start by"};
  using Request = sdk::ComputeInstance;
  using Answer = Nothing;
};

struct ComputeRemove {
  static constexpr Method kMethod{"/cci.v1alpha1.CCIDriver/cciRemoveContainerResource",
                                  "give back CPUs of"};
  using Request = sdk::ComputeRemoval;
  using Answer = Nothing;
};

/// The driver's options; only `pre_start_required` for cciAddContainerResource,
/// `with_topology_alignment` for cciHints, and `resizes`.
struct ComputeOptions {
  static constexpr Method kMethod{"/cci.v1alpha1.CCIDriver/cciGetOptions", "get the options of"};
  using Request = Nothing;
  using Answer = PluginOptions;
};

/// All of these calls, for the driver's side.
std::vector<ServedCall> ComputeCalls();

}  // namespace qrm::calls
