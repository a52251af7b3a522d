// Finds the records of one plugin by the plugin that is noted in them.
#include "checkpoint/plugin_records.h"

#include <map>
#include <utility>

namespace qrm::checkpoint {

PluginRecords RecordsOf(const NodeState& state, const std::string& plugin) {
  PluginRecords records{.plugin = plugin};
  state.ForEachPod([&](const PodRecord& pod) {
    for (const auto& [container, record] : pod.containers) {
      for (const auto& [resource, allocation] : record->allocations) {
        if (record->PluginOf(resource) == plugin) {
          records.allocations.push_back({.key = {pod.meta.uid, container},
                                         .pod_namespace = pod.meta.pod_namespace,
                                         .pod_name = pod.meta.name,
                                         .resource = resource,
                                         .allocation = allocation});
        }
      }
    }
  });
  for (const auto& [uid, waiting] : state.pending_removals()) {
    if (waiting.contains(plugin)) {
      records.pending_removals.push_back(uid);
    }
  }
  return records;
}

Change ChangeWithout(const NodeState& state, const PluginRecords& records) {
  std::map<ContainerKey, ContainerRecord> changed;
  for (const PluginRecords::Given& given : records.allocations) {
    ContainerRecord& record = changed.try_emplace(given.key, *state.Find(given.key)).first->second;
    record.allocations.erase(given.resource);
    record.origins.Edit().erase(given.resource);
  }
  Change change;
  for (const std::string& uid : records.pending_removals) {
    change.done_pending_removals.emplace_back(uid, records.plugin);
  }
  for (auto& [key, record] : changed) {
    if (record.allocations.empty()) {
      change.remove_containers.push_back(key);
    } else {
      change.put_containers.push_back(
          {state.FindPod(key.pod_uid)->meta, key.container, std::move(record)});
    }
  }
  return change;
}

}  // namespace qrm::checkpoint
