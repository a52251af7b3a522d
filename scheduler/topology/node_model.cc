// Reads the keys that decide about a place, by the readers of the plugins themselves.
#include "scheduler/topology/node_model.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/base/section.h"
#include "plugins/config/machine_config.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/fit_config.h"

namespace qrm::scheduler {
namespace {

using config::Section;

// A node's own files are not the scheduler's.
StatusOr<Machine> ReadMachine(const Section& section) {
  QRM_ASSIGN_OR_RETURN(const config::MachineConfig machine, config::ParseMachineConfig(section));
  if (!machine.source.starts_with("synthetic:") && !machine.source.starts_with("described:")) {
    return section.Error("machine", "is '" + machine.source + "', which only the node can read",
                         "write synthetic:DESCRIPTION or described:TEXT");
  }
  return config::LoadMachine(machine);
}

Status ReadPodKeys(const Section& section, PodRoleKeys& keys) {
  const std::pair<const char*, std::string*> places[] = {
      {"pod-role-label", &keys.role_label},
      {"pod-role-annotation", &keys.role_annotation},
      {"pod-type-annotation", &keys.type_annotation},
      {"pod-type-annotation-fallback", &keys.type_annotation_fallback},
      {"main-container-annotation", &keys.main_container_annotation}};
  for (const auto& [key, place] : places) {
    QRM_ASSIGN_OR_RETURN(*place, section.Text(key, *place));
  }
  return OkStatus();
}

Status ReadMerge(const Section& section, NodeModel& model) {
  QRM_ASSIGN_OR_RETURN(const std::string policy,
                       section.Text("topology-policy", std::string(ToString(model.merge.policy))));
  QRM_ASSIGN_OR_RETURN(model.merge.policy, ParseTopologyPolicy(policy));
  QRM_ASSIGN_OR_RETURN(const std::string scope,
                       section.Text("topology-scope", std::string(ToString(model.scope))));
  QRM_ASSIGN_OR_RETURN(model.scope, ParseTopologyScope(scope));
  QRM_ASSIGN_OR_RETURN(
      model.merge.prefer_closest_numa_nodes,
      section.Flag("prefer-closest-numa-nodes", model.merge.prefer_closest_numa_nodes));
  if (section.Has("numeric-align-resources")) {
    QRM_ASSIGN_OR_RETURN(model.merge.align_resources, section.Words("numeric-align-resources"));
  }
  if (section.Has("skip-namespaces")) {
    QRM_ASSIGN_OR_RETURN(model.skipped_namespaces, section.Words("skip-namespaces"));
  }
  return OkStatus();
}

/// Which devices a pod gets, kubelet decides once the pod is on the node: until then they, and what
/// is to be near to them, may be on any of its NUMA nodes.
void LeaveDevicesOpen(cpu::CpuPluginConfig& config) {
  for (auto& [name, pool] : config.pools) {
    pool.place.near_required = pool.place.near_required && !pool.place.NearResources();
  }
}

Status ReadPlugins(const Section& plugins, NodeModel& model) {
  QRM_RETURN_IF_ERROR(plugins.AllowKeys({"cpu", "memory", "nic"}));
  QRM_ASSIGN_OR_RETURN(const Section cpu_section, plugins.Child("cpu"));
  QRM_ASSIGN_OR_RETURN(cpu::CpuPluginConfig cpu_config, cpu::ParseCpuConfig(cpu_section));
  QRM_ASSIGN_OR_RETURN(cpu::FittingConfig fitting,
                       cpu::FitCpuConfig(model.machine, std::move(cpu_config)));
  model.cpu = std::move(fitting.config);
  LeaveDevicesOpen(model.cpu);
  if (model.cpu.static_mode.has_value()) {
    model.static_cpu.emplace(CpuLayout::LikeKubelet(model.machine), model.cpu.static_mode->options,
                             model.cpu.reserved);
  }
  QRM_ASSIGN_OR_RETURN(const Section memory_section, plugins.Child("memory"));
  QRM_ASSIGN_OR_RETURN(model.memory, memory::ParseMemoryConfig(memory_section));
  QRM_ASSIGN_OR_RETURN(const Section nic_section, plugins.Child("nic"));
  QRM_ASSIGN_OR_RETURN(model.nic, nic::ParseNicConfig(nic_section));
  QRM_ASSIGN_OR_RETURN(model.nics, nic::FindNics(model.nic, model.machine, {}));
  model.rules_name_pods = rules::NamePods(model.cpu.rules) || rules::NamePods(model.memory.rules) ||
                          rules::NamePods(model.nic.rules);
  return OkStatus();
}

template <typename Rule>
void NoteAnnotations(const std::vector<Rule>& rules, NodeModel& model) {
  for (const Rule& rule : rules) {
    for (const auto& [key, texts] : rule.select.annotations) {
      model.pod_annotations.insert(key);
    }
  }
}

void NoteAnnotations(NodeModel& model) {
  const PodRoleKeys& keys = model.pod_keys;
  model.pod_annotations = {keys.role_annotation, keys.type_annotation,
                           keys.type_annotation_fallback, keys.main_container_annotation};
  NoteAnnotations(model.cpu.rules, model);
  NoteAnnotations(model.memory.rules, model);
  NoteAnnotations(model.nic.rules, model);
}

/// What is not as the configuration says.
Status ReadPresent(const Section& section, NodeModel& model) {
  QRM_ASSIGN_OR_RETURN(model.offline, section.Parsed<CpuSet>("offline-cpus", "CPU list", "0-3,8"));
  model.pools = cpu::InitialState(model.cpu).pools;
  QRM_ASSIGN_OR_RETURN(const Section resized, section.Child("pool-cpus"));
  for (const std::string& name : resized.Keys()) {
    if (cpu::FindPool(model.cpu, name) == nullptr) {
      return resized.Error(name, "is not a pool", "name pools of plugins.cpu.pools");
    }
    QRM_ASSIGN_OR_RETURN(model.pools[name], resized.Parsed<CpuSet>(name, "CPU list", "0-3,8"));
  }
  return OkStatus();
}

}  // namespace

StatusOr<NodeModelPtr> ReadNodeModel(const std::string& text, const std::string& name) {
  QRM_ASSIGN_OR_RETURN(const Section section, Section::Parse(text, name, config::kForeignYaml));
  QRM_RETURN_IF_ERROR(section.AllowKeys(
      {"machine", "numa-memory", "memory-kinds", "topology-policy", "topology-scope",
       "prefer-closest-numa-nodes", "numeric-align-resources", "skip-namespaces", "pod-role-label",
       "pod-role-annotation", "pod-type-annotation", "pod-type-annotation-fallback",
       "main-container-annotation", "builtin-plugins", "plugins", "offline-cpus", "pool-cpus"}));
  auto model = std::make_shared<NodeModel>();
  QRM_ASSIGN_OR_RETURN(model->machine, ReadMachine(section));
  model->layout.emplace(model->machine);
  QRM_RETURN_IF_ERROR(Annotate(ReadMerge(section, *model), "cannot read " + name));
  QRM_RETURN_IF_ERROR(ReadPodKeys(section, model->pod_keys));
  if (section.Has("builtin-plugins")) {
    QRM_ASSIGN_OR_RETURN(model->plugins, section.Words("builtin-plugins"));
  }
  QRM_ASSIGN_OR_RETURN(const Section plugins, section.Child("plugins"));
  QRM_RETURN_IF_ERROR(ReadPlugins(plugins, *model));
  QRM_RETURN_IF_ERROR(ReadPresent(section, *model));
  NoteAnnotations(*model);
  return NodeModelPtr(std::move(model));
}

}  // namespace qrm::scheduler
