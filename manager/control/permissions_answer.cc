// Converts rules to messages.
#include "manager/control/permissions_answer.h"

#include <vector>

#include "api/proto/qrm/v1/permissions.pb.h"

namespace qrm::manager {
namespace {

v1::PermissionRule MessageOf(const PermissionRule& rule) {
  v1::PermissionRule message;
  const std::vector<std::string> allowed = AllowedWords(rule);
  message.set_title(rule.title);
  *message.mutable_namespaces() = {rule.namespaces.begin(), rule.namespaces.end()};
  *message.mutable_allow() = {allowed.begin(), allowed.end()};
  *message.mutable_pools() = {rule.pools.begin(), rule.pools.end()};
  *message.mutable_roles() = {rule.roles.begin(), rule.roles.end()};
  *message.mutable_resources() = {rule.resources.begin(), rule.resources.end()};
  *message.mutable_classes() = {rule.classes.begin(), rule.classes.end()};
  *message.mutable_drivers() = {rule.drivers.begin(), rule.drivers.end()};
  return message;
}

}  // namespace

v1::GetPermissionsResponse PermissionsAnswer(const Permissions& permissions,
                                             const std::string& pod_namespace) {
  v1::GetPermissionsResponse response;
  if (!pod_namespace.empty()) {
    *response.add_rules() = MessageOf(permissions.RuleFor(pod_namespace));
    return response;
  }
  for (const PermissionRule& rule : permissions.rules()) {
    *response.add_rules() = MessageOf(rule);
  }
  return response;
}

}  // namespace qrm::manager
