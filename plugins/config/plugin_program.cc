// Starts a plugin from flags and file.
#include "plugins/config/plugin_program.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "api/base/log.h"
#include "api/base/section.h"
#include "plugins/config/machine_config.h"
#include "plugins/sdk/plugin_driver.h"
#include "plugins/sdk/plugin_state.h"
#include "plugins/sdk/running_plugin.h"

namespace qrm::config {
namespace {

constexpr int kExitMisused = 2;

struct Flags {
  std::string config;
  std::string machine;
  bool print_state = false;
};

StatusOr<Machine> ReadMachine(const Section& section, const std::string& override_source) {
  QRM_ASSIGN_OR_RETURN(MachineConfig machine, ParseMachineConfig(section));
  if (!override_source.empty()) {
    machine.source = override_source;
  }
  return LoadMachine(machine);
}

void LogWarnings(const Machine& machine) {
  for (const std::string& warning : machine.parts().warnings) {
    log::Warning("description of the plugin's machine is incomplete", {{"warning", warning}});
  }
}

StatusOr<Section> ReadFile(const Flags& flags) {
  return flags.config.empty() ? Section::Parse("", "defaults") : Section::Load(flags.config);
}

/// A plugin, and its machine for the whole run.
struct Made {
  Machine machine;
  NamedPlugin named;
};

StatusOr<NamedPlugin> MakeOn(const Machine& machine, const Section& section,
                             const PluginFactory& make) {
  return make(WithoutMachineKeys(section), machine);
}

StatusOr<Made> MakePlugin(const Flags& flags, const PluginFactory& make) {
  QRM_ASSIGN_OR_RETURN(const Section section, ReadFile(flags));
  QRM_ASSIGN_OR_RETURN(Machine machine, ReadMachine(section, flags.machine));
  if (!flags.print_state) {
    LogWarnings(machine);
  }
  QRM_ASSIGN_OR_RETURN(NamedPlugin named, MakeOn(machine, section, make));
  return Made{std::move(machine), std::move(named)};
}

/// The plugin of the current file. Errors: also when its resource differs from that of `former`, by
/// which the manager knows the plugin.
StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeAnew(const Flags& flags,
                                                        const PluginFactory& make,
                                                        const Made& former) {
  QRM_ASSIGN_OR_RETURN(const Section section, ReadFile(flags));
  QRM_ASSIGN_OR_RETURN(NamedPlugin named, MakeOn(former.machine, section, make));
  if (named.resource != former.named.resource) {
    return section.Error(
        "resource", fmt::format("is not {}, with which the plugin started", former.named.resource),
        "restart the plugin to change it");
  }
  return std::move(named.plugin);
}

/// The state on disk; empty for a plugin that never ran.
StatusOr<std::unique_ptr<sdk::PluginState>> OpenState(const sdk::PluginSettings& settings) {
  const std::string path = sdk::StatePath(settings);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return sdk::MakeMemoryState();
  }
  return sdk::OpenPluginState(path);
}

Status PrintState(const sdk::PluginSettings& settings, sdk::ResourcePlugin& plugin) {
  QRM_ASSIGN_OR_RETURN(std::unique_ptr<sdk::PluginState> state, OpenState(settings));
  sdk::PluginDriver driver(plugin, settings.resource, std::move(state));
  QRM_RETURN_IF_ERROR(driver.Start());
  QRM_ASSIGN_OR_RETURN(const std::string json, driver.ExportState());
  std::cout << json << '\n';
  return OkStatus();
}

}  // namespace

int PluginProgramMain(const std::string& default_resource, const PluginFactory& make, int argc,
                      char** argv) {
  Flags flags;
  StatusOr<sdk::PluginSettings> settings = sdk::ParseSettings(
      default_resource, argc, argv,
      {{.name = "config", .help = "YAML file with the plugin's keys", .value = &flags.config},
       {.name = "machine",
        .help = "live, synthetic:DESCRIPTION, xml:FILE, fsroot:DIR or described:TEXT; replaces the "
                "file's key",
        .value = &flags.machine},
       {.name = "print-state",
        .help = "print the state as JSON and exit: the saved state, or else the initial one",
        .present = &flags.print_state}});
  StatusOr<Made> made = settings.ok() ? MakePlugin(flags, make) : StatusOr<Made>(settings.status());
  if (!made.ok()) {
    std::cerr << MessageOf(made.status()) << '\n';
    return kExitMisused;
  }
  if (settings->resource == default_resource) {
    settings->resource = made->named.resource;
  }
  const Status end = flags.print_state ? PrintState(*settings, *made->named.plugin)
                                       : sdk::RunPlugin(*settings, *made->named.plugin,
                                                        {.file = flags.config, .make = [&] {
                                                           return MakeAnew(flags, make, *made);
                                                         }});
  if (!end.ok()) {
    std::cerr << MessageOf(end) << '\n';
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

}  // namespace qrm::config
