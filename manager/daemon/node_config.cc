// Writes values as JSON, which is valid YAML, and sections of plugins as the operator wrote them.
#include "manager/daemon/node_config.h"

#include <cstddef>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/cpu/devices.h"
#include "plugins/cpu/fit_config.h"
#include "plugins/cpu/pools.h"
#include "plugins/nic/config.h"
#include "plugins/nic/kernel_watch.h"
#include "plugins/nic/state.h"
#include "plugins/placement/node_model.h"
#include "topology/machine_text.h"

namespace qrm::manager {
namespace {

using config::Section;
using nlohmann::json;

constexpr char kNic[] = "nic";

std::string Written(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Adds "name: value" at the end.
void Append(std::string& mapping, const std::string& name, const std::string& value) {
  mapping += fmt::format("{}{}: {}", mapping.empty() ? "" : ", ", name, value);
}

void AppendIfChanged(std::string& mapping, const char* name, const json& value, const json& usual) {
  if (value != usual) {
    Append(mapping, name, Written(value));
  }
}

/// Without addresses: no decision depends on them, and other readers must not see them.
json NicEntry(const nic::NicInfo& nic) {
  json entry = {{"interface", nic.id.interface},
                {"egress-mbps", nic.egress_mbps},
                {"ingress-mbps", nic.ingress_mbps}};
  if (nic.node.has_value()) {
    entry["numa-node"] = *nic.node;
  }
  if (!nic.id.netns.empty()) {
    entry["netns"] = nic.id.netns;
  }
  return entry;
}

const char* Word(nic::NicAffinity affinity) {
  return affinity == nic::NicAffinity::kRequired ? "required" : "preferred";
}

/// The section of the nic plugin, with the NICs of this node.
StatusOr<std::string> NicText(const Section& section, const Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const nic::NicPluginConfig config, nic::ParseNicConfig(section));
  QRM_ASSIGN_OR_RETURN(const auto nics, nic::FindNics(config, machine, nic::ReadNicFacts(config)));
  json text = {{"resource", config.resource},
               {"request", config.request_is_bandwidth ? "mbps" : "share"},
               {"numa", Word(config.affinity)},
               {"nics", json::array()},
               {"roles", json::object()}};
  for (const nic::NicInfo& nic : nics) {
    text["nics"].push_back(NicEntry(nic));
  }
  for (const auto& [role, affinity] : config.roles) {
    text["roles"][role] = {{"numa", Word(affinity)}};
  }
  return Written(text);
}

/// The section of the cpu plugin, with the locations of the devices that its pools name.
std::string CpuText(const Section& section, const Machine& machine,
                    const cpu::CpuPluginConfig& config) {
  const std::string text = section.OneLine();
  const std::string devices = cpu::NamedDevices(machine, config);
  return devices.empty()
             ? text
             : fmt::format("{{devices: {}, {}", devices, text.substr(text.find('{') + 1));
}

/// The keys whose values are not the default ones.
std::string ChangedKeys(placement::AdmissionOptions options, placement::PodKeys pod_keys) {
  placement::AdmissionOptions usual_options;
  placement::PodKeys usual_pod_keys;
  const std::vector<config::ConfigKey> keys = placement::NodeKeys(options, pod_keys);
  const std::vector<config::ConfigKey> usual = placement::NodeKeys(usual_options, usual_pod_keys);
  std::string text;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (std::string value = keys[i].show(); value != usual[i].show()) {
      Append(text, keys[i].name, value);
    }
  }
  return text;
}

}  // namespace

StatusOr<NodeConfig> NodeConfig::Make(const Parts& parts) {
  std::string keys;
  Append(keys, "machine", Written("described:" + MachineText(parts.machine)));
  const std::string changed = ChangedKeys(parts.admission, parts.pod_keys);
  keys += changed.empty() ? "" : ", " + changed;
  AppendIfChanged(keys, "builtin-plugins", parts.builtin.plugins, BuiltinNames());

  NodeConfig made{{}};
  std::string sections;
  QRM_ASSIGN_OR_RETURN(const Section defaults, Section::Parse("", "the defaults"));
  for (const std::string& plugin : parts.builtin.plugins) {
    const auto found = parts.builtin.sections.find(plugin);
    const Section& section = found == parts.builtin.sections.end() ? defaults : found->second;
    if (plugin == kNic) {
      QRM_ASSIGN_OR_RETURN(const std::string text, NicText(section, parts.machine));
      Append(sections, plugin, text);
      continue;
    }
    if (plugin == cpu::kResource) {
      QRM_ASSIGN_OR_RETURN(cpu::CpuPluginConfig config, cpu::ParseCpuConfig(section));
      QRM_ASSIGN_OR_RETURN(cpu::FittingConfig fitting,
                           cpu::FitCpuConfig(parts.machine, std::move(config)));
      made.cpu_ = std::move(fitting.config);
    }
    if (found != parts.builtin.sections.end()) {
      Append(sections, plugin,
             plugin == cpu::kResource ? CpuText(section, parts.machine, made.cpu_)
                                      : section.OneLine());
    }
  }
  if (!sections.empty()) {
    Append(keys, "plugins", fmt::format("{{{}}}", sections));
  }
  made.keys_ = std::move(keys);
  return made;
}

std::string NodeConfig::Text(const StringMap& plugin_values, const CpuSet& offline) const {
  std::string text = keys_;
  if (!offline.Empty()) {
    Append(text, "offline-cpus", Written(ToString(offline)));
  }
  const auto saved = plugin_values.find(cpu::kResource);
  if (saved != plugin_values.end()) {
    json resized = json::object();
    const auto loaded = cpu::LoadPools(cpu_, saved->second).value_or(cpu::SavedPools());
    for (const auto& [name, cpus] : loaded.pools) {
      // Readers compute an elastic pool's size from the pods, but they cannot compute its node.
      const cpu::PoolConfig* const pool = cpu::FindPool(cpu_, name);
      if (pool->size.has_value() ? pool->place.numa_required : cpus != pool->cpus) {
        resized[name] = ToString(cpus);
      }
    }
    if (!resized.empty()) {
      Append(text, "pool-cpus", Written(resized));
    }
  }
  return fmt::format("{{{}}}", text);
}

}  // namespace qrm::manager
