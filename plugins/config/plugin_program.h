// The main program of a built-in plugin in a separate process: flags, file, machine.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/base/status.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace qrm::config {

class Section;

/// A plugin and its resource, which `--resource` can replace.
struct NamedPlugin {
  std::string resource;
  std::unique_ptr<sdk::ResourcePlugin> plugin;
};

/// Creates a plugin from its configuration and the machine.
using PluginFactory =
    std::function<StatusOr<NamedPlugin>(const Section& section, const Machine& machine)>;

/// The whole main function of such a program. It reads the SDK's flags, `--config FILE`, `--machine
/// SOURCE` and `--print-state`, creates the plugin, and serves it or prints its state. Returns the
/// exit code: 0 after a signal or the printing, 1 when the plugin failed, 2 for a wrong command
/// line or configuration.
int PluginProgramMain(const std::string& default_resource, const PluginFactory& make, int argc,
                      char** argv);

}  // namespace qrm::config
