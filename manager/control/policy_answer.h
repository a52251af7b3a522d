// What the control API answers about the configuration of plugins.
#pragma once

#include <vector>

#include "api/proto/qrm/v1/policy.pb.h"
#include "manager/observability/config_trial.h"

namespace qrm::manager {

v1::GetPolicyResponse PolicyAnswer(const std::vector<PluginPolicy>& policies);

v1::TryConfigurationResponse TrialAnswer(const ConfigTrial& trial);

}  // namespace qrm::manager
