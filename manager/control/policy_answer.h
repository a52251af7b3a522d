// The control API's answers about the configuration of plugins.
#pragma once

#include <vector>

#include "manager/observability/config_trial.h"

namespace qrm::v1 {
class GetPolicyResponse;
class TryConfigurationResponse;
}  // namespace qrm::v1

namespace qrm::manager {

v1::GetPolicyResponse PolicyAnswer(const std::vector<PluginPolicy>& policies);

v1::TryConfigurationResponse TrialAnswer(const ConfigTrial& trial);

}  // namespace qrm::manager
