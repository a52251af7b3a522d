// What the control API answers about permissions.
#pragma once

#include <string>

#include "plugins/placement/permissions.h"

namespace qrm::v1 {
class GetPermissionsResponse;
}  // namespace qrm::v1

namespace qrm::manager {

/// All rules in their order, or the one that decides for `pod_namespace` when that is not empty.
v1::GetPermissionsResponse PermissionsAnswer(const placement::Permissions& permissions,
                                             const std::string& pod_namespace);

}  // namespace qrm::manager
