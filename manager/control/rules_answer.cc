// The answers about classes, permissions and configurations.
#include "api/proto/qrm/v1/classes.pb.h"
#include "api/proto/qrm/v1/permissions.pb.h"
#include "api/proto/qrm/v1/policy.pb.h"
#include "manager/control/control_answers.h"

namespace qrm::manager {
namespace {

void FillClass(const sdk::ClassInfo& info, const ClassTypeStatus& type, v1::Class& message) {
  message.set_name(info.name);
  message.set_capacity(type.offered.CapacityOf(info));
  const auto users = type.users.find(info.name);
  message.set_used(users == type.users.end() ? 0 : users->second);
  const auto rule = type.offered.rules->classes.find(info.name);
  if (rule != type.offered.rules->classes.end()) {
    *message.mutable_namespaces() = {rule->second.namespaces.begin(),
                                     rule->second.namespaces.end()};
    for (const std::string& account : rule->second.service_accounts) {
      message.add_namespaces("account:" + account);
    }
    for (const std::string& label : rule->second.namespace_labels) {
      message.add_namespaces("label:" + label);
    }
  }
  message.set_definition(info.definition);
  message.set_problem(info.problem);
}

v1::PermissionRule RuleMessage(const placement::PermissionRule& rule) {
  v1::PermissionRule message;
  const std::vector<std::string> allowed = placement::AllowedWords(rule);
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

v1::ListClassesResponse ClassesAnswer(const std::vector<ClassTypeStatus>& types) {
  v1::ListClassesResponse response;
  for (const ClassTypeStatus& status : types) {
    const sdk::ClassType& type = status.offered.type;
    v1::ClassType& message = *response.add_types();
    message.set_name(type.name);
    message.set_level(type.level == sdk::ClassLevel::kPod ? "pod" : "container");
    message.set_mutable_(type.is_mutable);
    message.set_default_class(status.offered.rules->default_class);
    message.set_problem(type.problem);
    message.set_repairs(status.work.repairs + type.repairs);
    *message.mutable_problems() = {status.work.problems.begin(), status.work.problems.end()};
    message.set_retired(status.offered.is_retired);
    *message.mutable_left() = {status.left.begin(), status.left.end()};
    for (const sdk::ClassInfo& info : type.classes) {
      FillClass(info, status, *message.add_classes());
    }
  }
  return response;
}

v1::GetPermissionsResponse PermissionsAnswer(const placement::Permissions& permissions,
                                             const std::string& pod_namespace) {
  v1::GetPermissionsResponse response;
  if (!pod_namespace.empty()) {
    *response.add_rules() = RuleMessage(permissions.RuleFor(pod_namespace));
    return response;
  }
  for (const placement::PermissionRule& rule : permissions.rules()) {
    *response.add_rules() = RuleMessage(rule);
  }
  return response;
}

v1::GetPolicyResponse PolicyAnswer(const std::vector<PluginPolicy>& policies) {
  v1::GetPolicyResponse response;
  for (const PluginPolicy& policy : policies) {
    v1::PluginPolicy& message = *response.add_plugins();
    message.set_plugin(policy.plugin);
    message.set_keys(policy.keys);
    message.set_place(policy.place);
  }
  return response;
}

v1::TryConfigurationResponse TrialAnswer(const ConfigTrial& trial) {
  v1::TryConfigurationResponse response;
  for (const ChangedKey& key : trial.keys) {
    v1::ChangedKey& message = *response.add_keys();
    message.set_key(key.key);
    message.set_from(key.from);
    message.set_to(key.to);
    message.set_at_next_start(key.at_next_start);
  }
  for (const ChangedPool& pool : trial.pools) {
    v1::ChangedPool& message = *response.add_pools();
    message.set_resource_name(pool.resource);
    message.set_pool(pool.pool);
    message.set_from(pool.from);
    message.set_to(pool.to);
  }
  for (const Move& move : trial.moves) {
    v1::Move& message = *response.add_moves();
    message.set_namespace_(move.pod_namespace);
    message.set_pod(move.pod_name);
    message.set_container(move.key.container);
    message.set_resource_name(move.resource);
    message.set_from(move.from);
    message.set_to(move.to);
  }
  return response;
}

}  // namespace qrm::manager
