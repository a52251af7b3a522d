// Creates the plugins that run inside qrmd.
#include "manager/daemon/builtin_plugins.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/check.h"
#include "api/base/errorf.h"
#include "api/base/log.h"
#include "manager/registry/plugins.h"
#include "plugins/config/machine_config.h"
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/cpu/fit_config.h"
#include "plugins/cpu/usage.h"
#include "plugins/memory/memory_plugin.h"
#include "plugins/nic/config.h"
#include "plugins/nic/kernel_watch.h"
#include "plugins/sdk/plugin_driver.h"
#include "topology/machine.h"

namespace qrm::manager {
namespace {

using config::ConfigKey;
using config::KeyShape;
using config::Section;

StatusOr<BuiltinPlugin> MakeCpu(const cpu::CpuPluginConfig& config, const Machine& machine) {
  QRM_ASSIGN_OR_RETURN(auto plugin, cpu::MakeCpuPlugin(config, machine));
  return BuiltinPlugin{cpu::kResource, std::move(plugin)};
}

StatusOr<BuiltinPlugin> MakeMemory(const memory::MemoryPluginConfig& config,
                                   const Machine& machine) {
  QRM_ASSIGN_OR_RETURN(auto plugin, memory::MakeMemoryPlugin(config, machine));
  return BuiltinPlugin{memory::kResource, std::move(plugin)};
}

StatusOr<BuiltinPlugin> MakeNic(const nic::NicPluginConfig& config, const Machine& machine) {
  QRM_ASSIGN_OR_RETURN(auto plugin, nic::MakeLiveNicPlugin(config, machine));
  return BuiltinPlugin{config.resource, std::move(plugin)};
}

template <auto Read, auto Make>
StatusOr<BuiltinPlugin> ReadAndMake(const Section& section, const Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const auto config, Read(section));
  StatusOr<BuiltinPlugin> made = Make(config, machine);
  if (!made.ok()) {
    return Annotate(made.status(), section.Place());
  }
  made->place = section.Place();
  return made;
}

struct Builtin {
  const char* name;
  StatusOr<BuiltinPlugin> (*make)(const Section&, const Machine&);
};
constexpr Builtin kBuiltins[] = {
    {"cpu", ReadAndMake<cpu::ParseCpuConfig, MakeCpu>},
    {"memory", ReadAndMake<memory::ParseMemoryConfig, MakeMemory>},
    {"nic", ReadAndMake<nic::ParseNicConfig, MakeNic>},
};

const Builtin* FindBuiltin(const std::string& name) {
  const auto* const found =
      std::find_if(std::begin(kBuiltins), std::end(kBuiltins),
                   [&](const Builtin& builtin) { return builtin.name == name; });
  return found == std::end(kBuiltins) ? nullptr : found;
}

Status ReadPlugins(const Section& section, const std::string& key, BuiltinOptions& options) {
  QRM_ASSIGN_OR_RETURN(options.plugins, section.Words(key));
  for (const std::string& plugin : options.plugins) {
    if (FindBuiltin(plugin) == nullptr) {
      return section.Error(key, fmt::format("has '{}', which is not built in", plugin),
                           "choose from " + config::EnumerateWords(BuiltinNames(), "and"));
    }
  }
  return OkStatus();
}

Status ReadSections(const Section& section, const std::string& key, BuiltinOptions& options) {
  QRM_ASSIGN_OR_RETURN(const auto children, section.Children(key));
  options.sections.clear();
  for (const auto& [plugin, keys] : children) {
    if (FindBuiltin(plugin) == nullptr) {
      return section.Error(key, fmt::format("has a section '{}', which is not built in", plugin),
                           "the sections are " + config::EnumerateWords(BuiltinNames(), "and"));
    }
    options.sections.emplace(plugin, keys);
  }
  return OkStatus();
}

Status ReadRequired(const Section& section, const std::string& key, BuiltinOptions& options) {
  QRM_ASSIGN_OR_RETURN(options.required, section.Words(key));
  for (const std::string& resource : options.required) {
    if (!CheckResourceName(resource).ok()) {
      return section.Error(key, fmt::format("has '{}', which is not a resource name", resource),
                           "write names such as cpu or example.com/nic");
    }
  }
  return OkStatus();
}

std::string ShowSections(const BuiltinOptions& options) {
  std::vector<std::string> sections;
  sections.reserve(options.sections.size());
  for (const auto& [plugin, keys] : options.sections) {
    sections.push_back(fmt::format("{}: {}", plugin, keys.OneLine()));
  }
  return fmt::format("{{{}}}", fmt::join(sections, ", "));
}

}  // namespace

std::vector<std::string> BuiltinNames() {
  std::vector<std::string> names;
  for (const Builtin& builtin : kBuiltins) {
    names.emplace_back(builtin.name);
  }
  return names;
}

std::vector<ConfigKey> BuiltinKeys(BuiltinOptions& options) {
  const std::string names = fmt::format("{}", fmt::join(BuiltinNames(), ", "));
  return {
      {.name = "builtin-plugins",
       .shape = KeyShape::kList,
       .range = "list of " + names,
       .help = "The plugins that run inside qrmd. Omit plugins that run as processes.",
       .read = [&options](const Section& section,
                          const std::string& key) { return ReadPlugins(section, key, options); },
       .show = [&options] { return config::ListText(options.plugins); }},
      {.name = "required-plugins",
       .shape = KeyShape::kList,
       .range = "list of resource names",
       .help =
           "Required plugins, as `qrmctl plugins` names them. While one of them is not running, "
           "qrmd rejects new containers, except those in `plugin-namespaces`. `builtin` means "
           "all of `builtin-plugins`.",
       .read = [&options](const Section& section,
                          const std::string& key) { return ReadRequired(section, key, options); },
       .show = [&options] { return config::ListText(options.required); }},
      {.name = "plugins",
       .shape = KeyShape::kMapping,
       .range = "sections " + names,
       .help = "The keys of the built-in plugins; see configuration-plugins.md.",
       .read = [&options](const Section& section,
                          const std::string& key) { return ReadSections(section, key, options); },
       .show = [&options] { return ShowSections(options); }}};
}

StatusOr<std::vector<BuiltinPlugin>> MakeBuiltinPlugins(const BuiltinOptions& options,
                                                        const Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const Section defaults, Section::Parse("", "the defaults"));
  std::vector<BuiltinPlugin> builtins;
  for (const std::string& name : options.plugins) {
    const Builtin* const builtin = FindBuiltin(name);
    QRM_CHECK(builtin != nullptr);
    const auto section = options.sections.find(name);
    QRM_ASSIGN_OR_RETURN(
        BuiltinPlugin made,
        builtin->make(section == options.sections.end() ? defaults : section->second, machine));
    builtins.push_back(std::move(made));
  }
  return builtins;
}

StatusOr<std::vector<std::string>> NetnsAnnotations(const BuiltinOptions& options) {
  constexpr char kNic[] = "nic";
  if (std::find(options.plugins.begin(), options.plugins.end(), kNic) == options.plugins.end()) {
    return std::vector<std::string>();
  }
  nic::NicPluginConfig config;
  if (const auto section = options.sections.find(kNic); section != options.sections.end()) {
    QRM_ASSIGN_OR_RETURN(config, nic::ParseNicConfig(section->second));
  }
  return std::vector<std::string>{config.names.netns_annotation};
}

StatusOr<std::vector<BuiltinPlugin>> MakeChangedPlugins(const BuiltinOptions& former,
                                                        const BuiltinOptions& next,
                                                        const Machine& machine) {
  const auto text = [](const BuiltinOptions& options, const std::string& plugin) {
    const auto section = options.sections.find(plugin);
    return section == options.sections.end() ? "{}" : section->second.OneLine();
  };
  const BuiltinOptions same_plugins{.plugins = former.plugins, .sections = next.sections};
  QRM_ASSIGN_OR_RETURN(const auto annotations, NetnsAnnotations(former));
  QRM_ASSIGN_OR_RETURN(const auto next_annotations, NetnsAnnotations(same_plugins));
  if (annotations != next_annotations) {  // permissions know only the annotation of the start
    const auto nic = next.sections.find("nic");
    return Errorf(
        StatusCode::kFailedPrecondition,
        "{}cannot change plugins.nic.names.netns-annotation from {} to {} while qrmd runs; restore "
        "the key, or restart qrmd",
        nic == next.sections.end() ? "" : nic->second.Place() + ": ", annotations.front(),
        next_annotations.front());
  }
  BuiltinOptions changed{.plugins = {}, .sections = next.sections};
  for (const std::string& plugin : former.plugins) {
    if (text(former, plugin) != text(next, plugin)) {
      changed.plugins.push_back(plugin);
    }
  }
  return MakeBuiltinPlugins(changed, machine);
}

StatusOr<CpuSet> ReservedCpus(const BuiltinOptions& options, const config::MachineConfig& source,
                              const Machine& machine) {
  const bool live = source.source == config::MachineConfig().source;
  const auto section = options.sections.find(cpu::kResource);
  const bool built_in = std::find(options.plugins.begin(), options.plugins.end(), cpu::kResource) !=
                        options.plugins.end();
  if (!live || !built_in || section == options.sections.end()) {
    return CpuSet();
  }
  QRM_ASSIGN_OR_RETURN(cpu::CpuPluginConfig config, cpu::ParseCpuConfig(section->second));
  StatusOr<cpu::FittingConfig> fitting = cpu::FitCpuConfig(machine, std::move(config));
  if (!fitting.ok()) {
    return Annotate(fitting.status(), section->second.Place());
  }
  return std::move(fitting->config.reserved);
}

std::optional<cpu::CpuUsage> BuiltinCpuUsage(Plugins& plugins) {
  std::optional<cpu::CpuUsage> usage;
  LocalPlugin* const local = plugins.Local(cpu::kResource);
  if (local != nullptr) {
    local->Run([&usage](sdk::PluginDriver& driver) {
      const Status asked = driver.Ask("Usage", [&usage](const sdk::ResourcePlugin& plugin) {
        const auto* const source = dynamic_cast<const cpu::UsageSource*>(&plugin);
        usage = source == nullptr ? std::nullopt : std::optional(source->Usage());
        return OkStatus();
      });
      if (!asked.ok()) {
        log::Warning("the use of CPUs is not known", {{"error", MessageOf(asked)}});
      }
    });
  }
  return usage;
}

std::vector<std::string> RequiredResources(const BuiltinOptions& options,
                                           const std::vector<BuiltinPlugin>& builtins) {
  std::vector<std::string> required;
  for (const std::string& resource : options.required) {
    if (resource != kAllBuiltin) {
      required.push_back(resource);
      continue;
    }
    for (const BuiltinPlugin& builtin : builtins) {
      required.push_back(builtin.resource);
    }
  }
  return required;
}

}  // namespace qrm::manager
