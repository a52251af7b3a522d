// Reads the keys that decide about a place, by the readers of the plugins themselves.
#include "plugins/placement/node_model.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/base/section.h"
#include "plugins/config/machine_config.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/fit_config.h"

namespace qrm::placement {
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
  const PodKeys& keys = model.pod_keys;
  model.pod_annotations = {keys.role_annotation, keys.type_annotation,
                           keys.type_annotation_fallback, keys.main_container_annotation,
                           model.options.skip_annotation};
  for (const ImplicitResource& implicit : model.options.implicit_resources) {
    model.pod_annotations.insert(implicit.annotation);
  }
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

std::vector<config::ConfigKey> NodeKeys(AdmissionOptions& options, PodKeys& pod_keys) {
  std::vector<config::ConfigKey> keys;
  for (auto& more : {PlacementKeys(options), RequestKeys(options), SkipKeys(options),
                     RuleKeys(options), RoleAndTypeKeys(pod_keys)}) {
    keys.insert(keys.end(), more.begin(), more.end());
  }
  return keys;
}

StatusOr<NodeModelPtr> ReadNodeModel(const std::string& text, const std::string& name) {
  QRM_ASSIGN_OR_RETURN(const Section section, Section::Parse(text, name, config::kForeignYaml));
  auto model = std::make_shared<NodeModel>();
  std::vector<std::string_view> allowed = {"machine",         "numa-memory", "memory-kinds",
                                           "builtin-plugins", "plugins",     "offline-cpus",
                                           "pool-cpus"};
  const std::vector<config::ConfigKey> keys = NodeKeys(model->options, model->pod_keys);
  for (const config::ConfigKey& key : keys) {
    allowed.emplace_back(key.name);
  }
  QRM_RETURN_IF_ERROR(section.AllowKeys(allowed));
  for (const config::ConfigKey& key : keys) {
    if (section.Has(key.name)) {
      QRM_RETURN_IF_ERROR(key.read(section, key.name));
    }
  }
  QRM_ASSIGN_OR_RETURN(model->machine, ReadMachine(section));
  model->layout.emplace(model->machine);
  if (section.Has("builtin-plugins")) {
    QRM_ASSIGN_OR_RETURN(model->plugins, section.Words("builtin-plugins"));
  }
  QRM_ASSIGN_OR_RETURN(const Section plugins, section.Child("plugins"));
  QRM_RETURN_IF_ERROR(ReadPlugins(plugins, *model));
  QRM_RETURN_IF_ERROR(ReadPresent(section, *model));
  NoteAnnotations(*model);
  return NodeModelPtr(std::move(model));
}

}  // namespace qrm::placement
