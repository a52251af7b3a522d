// The control API's answer about permissions.
#pragma once

#include <string>

#include "manager/admission/permissions.h"

namespace qrm::v1 {
class GetPermissionsResponse;
}  // namespace qrm::v1

namespace qrm::manager {

/// All rules in their order, or only the rule for `pod_namespace` if that is not empty.
v1::GetPermissionsResponse PermissionsAnswer(const Permissions& permissions,
                                             const std::string& pod_namespace);

}  // namespace qrm::manager
