// The main programs of the plugins that qrmd also has built in, and of the compute driver: flags,
// file, machine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/base/section.h"
#include "api/base/status.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace qrm::programs {

struct CommandLine {
  int argc;
  char** argv;
};

/// `--config FILE` and `--machine SOURCE`.
struct InputFlags {
  std::string config;
  std::string machine;

  /// These flags, then `more`. `what` has the file's keys: "plugin".
  std::vector<sdk::ExtraFlag> With(const std::string& what, std::vector<sdk::ExtraFlag> more);
};

/// What the flags lead to: the file without the keys that describe the machine, and the machine.
struct Input {
  config::Section section;
  Machine machine;
};
/// Errors: kInvalidArgument with file and line; those of Discover.
StatusOr<Input> ReadInput(const InputFlags& flags);

/// Prints `error`, and returns the exit code of a wrong command line or configuration: 2.
int Misused(const Status& error);

/// A plugin and its resource, which `--resource` can replace.
struct NamedPlugin {
  std::string resource;
  std::unique_ptr<sdk::ResourcePlugin> plugin;
};

/// Creates a plugin from its configuration and the machine.
using PluginFactory =
    std::function<StatusOr<NamedPlugin>(const config::Section& section, const Machine& machine)>;

/// The whole main function of such a program. It reads the SDK's flags, those of InputFlags and
/// `--print-state`, creates the plugin, and serves it or prints its state. Returns the exit code: 0
/// after a signal or the printing, 1 when the plugin failed, 2 for a wrong command line or
/// configuration.
int PluginProgramMain(const std::string& default_resource, const PluginFactory& make,
                      CommandLine command);

/// The same for a policy: `parse` reads its configuration, which may name its resource, and `make`
/// creates the plugin.
template <typename Config, typename Make>
int PolicyMain(const char* resource, StatusOr<Config> (*parse)(const config::Section&),
               const Make& make, CommandLine command) {
  const auto named = [&](const config::Section& section,
                         const Machine& machine) -> StatusOr<NamedPlugin> {
    QRM_ASSIGN_OR_RETURN(const Config config, parse(section));
    QRM_ASSIGN_OR_RETURN(auto plugin, make(config, machine));
    if constexpr (requires { config.resource; }) {
      return NamedPlugin{config.resource, std::move(plugin)};
    }
    return NamedPlugin{resource, std::move(plugin)};
  };
  return PluginProgramMain(resource, named, command);
}

}  // namespace qrm::programs
