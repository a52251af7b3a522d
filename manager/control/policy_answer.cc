// Converts configurations and their changes to messages.
#include "manager/control/policy_answer.h"

#include "api/proto/qrm/v1/policy.pb.h"

namespace qrm::manager {

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
