// What each part of the daemon is given of the configuration.
#pragma once

#include "manager/admission/admission_options.h"
#include "manager/admission/dry_runs.h"
#include "manager/config/config.h"
#include "manager/control/control_server.h"
#include "manager/podresources/pod_resources_server.h"

namespace qrm::manager {

AdmissionOptions AdmissionOptionsOf(const Config& config);
DryRuns::Options DryRunOptionsOf(const Config& config);
ControlOptions ControlOptionsOf(const Config& config);

/// Whoever takes kubelet's place, at its own socket, has no kubelet to ask.
PodResourcesOptions PodResourcesOptionsOf(const Config& config);

}  // namespace qrm::manager
