// The readers, in the order of the keys.
#include "manager/config/config_readers.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/number.h"
#include "manager/kubelet/https_url.h"

namespace qrm::manager {
namespace {

using config::Section;

StatusOr<ImplicitResource> ReadImplicitResource(const Section& item) {
  QRM_RETURN_IF_ERROR(item.AllowKeys({"resource", "roles", "annotation"}));
  ImplicitResource implicit;
  QRM_ASSIGN_OR_RETURN(implicit.resource, item.Text("resource", ""));
  QRM_ASSIGN_OR_RETURN(const std::vector<std::string> roles, item.Words("roles"));
  QRM_ASSIGN_OR_RETURN(implicit.annotation, item.Text("annotation", ""));
  implicit.roles = {roles.begin(), roles.end()};
  if (!CheckResourceName(implicit.resource).ok()) {
    return item.Error("resource",
                      fmt::format("is '{}', which is no resource name", implicit.resource),
                      "write one such as NIC or example.com/nic");
  }
  if (implicit.roles.empty() && implicit.annotation.empty()) {
    return item.Error("resource", "is given to nobody", "add roles or an annotation");
  }
  return implicit;
}

}  // namespace

Status ReadBuiltinPlugins(const Section& section, const std::string& key, Config& config) {
  QRM_ASSIGN_OR_RETURN(config.builtin_plugins, section.Words(key));
  for (const std::string& plugin : config.builtin_plugins) {
    if (plugin != "cpu" && plugin != "memory" && plugin != "nic") {
      return section.Error(key, fmt::format("has '{}', which is not built in", plugin),
                           "choose from cpu, memory and nic");
    }
  }
  return OkStatus();
}

Status ReadPlugins(const Section& section, const std::string& key, Config& config) {
  QRM_ASSIGN_OR_RETURN(const auto children, section.Children(key));
  config.plugins.clear();
  for (const auto& [plugin, keys] : children) {
    if (plugin != "cpu" && plugin != "memory" && plugin != "nic") {
      return section.Error(key, fmt::format("has a section '{}', which is not built in", plugin),
                           "the sections are cpu, memory and nic");
    }
    config.plugins.emplace(plugin, keys);
  }
  return OkStatus();
}

Status ReadMachineKeys(const Section& section, const std::string& /*key*/, Config& config) {
  QRM_ASSIGN_OR_RETURN(const config::MachineConfig machine, config::ParseMachineConfig(section));
  if (section.Has("machine")) {
    config.machine.source = machine.source;
  }
  if (section.Has("numa-memory")) {
    config.machine.node_memory = machine.node_memory;
  }
  return OkStatus();
}

Status ReadTopologyPolicy(const Section& section, const std::string& key, Config& config) {
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
  const StatusOr<TopologyPolicy> policy = ParseTopologyPolicy(text);
  if (!policy.ok()) {
    return section.Error(key, fmt::format("is '{}', which is no policy", text),
                         "write none, best-effort, restricted, single-numa-node or numeric");
  }
  config.merge.policy = *policy;
  return OkStatus();
}

Status ReadTopologyScope(const Section& section, const std::string& key, Config& config) {
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
  const StatusOr<TopologyScope> scope = ParseTopologyScope(text);
  if (!scope.ok()) {
    return section.Error(key, fmt::format("is '{}', which is no scope", text),
                         "write container or pod");
  }
  config.topology_scope = *scope;
  return OkStatus();
}

Status ReadNamesMap(const Section& section, const std::string& key, Config& config) {
  QRM_ASSIGN_OR_RETURN(const Section names, section.Child(key));
  config.resource_names_map.clear();
  for (const std::string& from : names.Keys()) {
    QRM_ASSIGN_OR_RETURN(const std::string to, names.Text(from, ""));
    for (const std::string& name : {from, to}) {
      if (!CheckResourceName(name).ok()) {
        return names.Error(
            from, fmt::format("maps '{}' to '{}', and '{}' is no resource name", from, to, name),
            "write names such as cpu or example.com/nic");
      }
    }
    config.resource_names_map[from] = to;
  }
  return OkStatus();
}

Status ReadImplicitResources(const Section& section, const std::string& key, Config& config) {
  QRM_ASSIGN_OR_RETURN(const std::vector<Section> items, section.Items(key));
  config.implicit_resources.clear();
  for (const Section& item : items) {
    QRM_ASSIGN_OR_RETURN(ImplicitResource implicit, ReadImplicitResource(item));
    config.implicit_resources.push_back(std::move(implicit));
  }
  return OkStatus();
}

Status ReadControlUids(const Section& section, const std::string& key, Config& config) {
  QRM_ASSIGN_OR_RETURN(const std::vector<std::string> words, section.Words(key));
  config.control_uids.clear();
  for (const std::string& word : words) {
    const auto uid = ParseNumber<uint32_t>(word);
    if (!uid.has_value()) {
      return section.Error(key, fmt::format("has '{}', which is no user id", word),
                           "write numbers such as [1000]");
    }
    config.control_uids.push_back(*uid);
  }
  return OkStatus();
}

Status ReadPodResourcesGroup(const Section& section, const std::string& key, Config& config) {
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
  const auto group = ParseNumber<gid_t>(text);
  if (!group.has_value()) {
    return section.Error(key, fmt::format("is '{}', which is no group id", text),
                         "write a number such as 1000");
  }
  config.pod_resources.group = group;
  return OkStatus();
}

Status ReadKubeletUrl(const Section& section, const std::string& key, Config& config) {
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
  if (!text.empty() && !ParseHttpsUrl(text).ok()) {
    return section.Error(key, fmt::format("is '{}', which is no https address", text),
                         "write one such as https://127.0.0.1:10250/pods");
  }
  config.kubelet_url = text;
  return OkStatus();
}

Status ReadLogLevel(const Section& section, const std::string& key, Config& config) {
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
  const StatusOr<log::Level> level = log::ParseLevel(text);
  if (!level.ok()) {
    return section.Error(key, fmt::format("is '{}', which is no level", text),
                         "write debug, info, warning or error");
  }
  config.log_level = *level;
  return OkStatus();
}

Status ReadRealtimePriority(const Section& section, const std::string& key, Config& config) {
  constexpr int kHighest = 99;  // sched(7)
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
  const auto priority = ParseNumber<int>(text);
  if (!priority.has_value() || *priority < 0 || *priority > kHighest) {
    return section.Error(key, fmt::format("is '{}', which is no number from 0 to 99", text),
                         "write 1 for real-time, or 0 for none");
  }
  config.realtime_priority = *priority;
  return OkStatus();
}

Status ReadNriIndex(const Section& section, const std::string& key, Config& config) {
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
  if (text.size() != 2 || text.find_first_not_of("0123456789") != std::string::npos) {
    return section.Error(key, fmt::format("is '{}', which is not two digits", text),
                         "write one from \"00\" to \"99\"");
  }
  config.nri_plugin_index = text;
  return OkStatus();
}

Status ReadAlignResources(const Section& section, const std::string& key, Config& config) {
  QRM_ASSIGN_OR_RETURN(config.merge.align_resources, section.Words(key));
  return OkStatus();
}

Status ReadClosestNodes(const Section& section, const std::string& key, Config& config) {
  QRM_ASSIGN_OR_RETURN(config.merge.prefer_closest_numa_nodes, section.Flag(key, false));
  return OkStatus();
}

}  // namespace qrm::manager
