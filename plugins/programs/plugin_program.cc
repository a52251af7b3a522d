// Starts a plugin from flags and file.
#include "plugins/programs/plugin_program.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "api/base/log.h"
#include "plugins/config/machine_config.h"
#include "plugins/sdk/plugin_driver.h"
#include "plugins/sdk/plugin_state.h"
#include "plugins/sdk/running_plugin.h"

namespace qrm::programs {
namespace {

constexpr int kExitMisused = 2;

struct Flags {
  InputFlags input;
  bool print_state = false;
};

using config::Section;

StatusOr<Section> ReadFile(const InputFlags& flags) {
  return flags.config.empty() ? Section::Parse("", "defaults") : Section::Load(flags.config);
}

/// A plugin, and its machine for the whole run.
struct Made {
  Machine machine;
  NamedPlugin named;
};

StatusOr<Made> MakePlugin(const Flags& flags, const PluginFactory& make) {
  QRM_ASSIGN_OR_RETURN(Input input, ReadInput(flags.input));
  for (const std::string& warning : input.machine.parts().warnings) {
    if (!flags.print_state) {
      log::Warning("description of the plugin's machine is incomplete", {{"warning", warning}});
    }
  }
  QRM_ASSIGN_OR_RETURN(NamedPlugin named, make(input.section, input.machine));
  return Made{std::move(input.machine), std::move(named)};
}

/// The plugin of the current file. Errors: also when its resource differs from that of `former`, by
/// which the manager knows the plugin.
StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeAnew(const Flags& flags,
                                                        const PluginFactory& make,
                                                        const Made& former) {
  QRM_ASSIGN_OR_RETURN(const Section section, ReadFile(flags.input));
  QRM_ASSIGN_OR_RETURN(NamedPlugin named,
                       make(config::WithoutMachineKeys(section), former.machine));
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

std::vector<sdk::ExtraFlag> InputFlags::With(const std::string& what,
                                             std::vector<sdk::ExtraFlag> more) {
  std::vector<sdk::ExtraFlag> all = {
      {.name = "config",
       .help = fmt::format("YAML file with the {}'s keys", what),
       .value = &config},
      {.name = "machine",
       .help = "live, synthetic:DESCRIPTION, xml:FILE, fsroot:DIR or described:TEXT; replaces the "
               "file's key",
       .value = &machine}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

StatusOr<Input> ReadInput(const InputFlags& flags) {
  QRM_ASSIGN_OR_RETURN(const Section file, ReadFile(flags));
  QRM_ASSIGN_OR_RETURN(config::MachineConfig machine, config::ParseMachineConfig(file));
  if (!flags.machine.empty()) {
    machine.source = flags.machine;
  }
  QRM_ASSIGN_OR_RETURN(Machine loaded, config::LoadMachine(machine));
  return Input{config::WithoutMachineKeys(file), std::move(loaded)};
}

int Misused(const Status& error) {
  std::cerr << MessageOf(error) << '\n';
  return kExitMisused;
}

int PluginProgramMain(const std::string& default_resource, const PluginFactory& make,
                      CommandLine command) {
  Flags flags;
  StatusOr<sdk::PluginSettings> settings = sdk::ParseSettings(
      default_resource, command.argc, command.argv,
      flags.input.With(
          "plugin",
          {{.name = "print-state",
            .help = "print the state as JSON and exit: the saved state, or else the initial one",
            .present = &flags.print_state}}));
  StatusOr<Made> made = settings.ok() ? MakePlugin(flags, make) : StatusOr<Made>(settings.status());
  if (!made.ok()) {
    return Misused(made.status());
  }
  if (settings->resource == default_resource) {
    settings->resource = made->named.resource;
  }
  const Status end = flags.print_state ? PrintState(*settings, *made->named.plugin)
                                       : sdk::RunPlugin(*settings, *made->named.plugin,
                                                        {.file = flags.input.config, .make = [&] {
                                                           return MakeAnew(flags, make, *made);
                                                         }});
  if (!end.ok()) {
    std::cerr << MessageOf(end) << '\n';
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

}  // namespace qrm::programs
