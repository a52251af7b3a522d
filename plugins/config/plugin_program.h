// The program around a built-in plugin that runs as a process of its own: flags, file, machine.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/base/status.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace qrm::config {

class Section;

/// A plugin and the resource it serves unless `--resource` says otherwise.
struct NamedPlugin {
  std::string resource;
  std::unique_ptr<sdk::ResourcePlugin> plugin;
};

/// Makes a plugin from its configuration and the machine.
using PluginFactory =
    std::function<StatusOr<NamedPlugin>(const Section& section, const Machine& machine)>;

/// All of such a program's main: reads the SDK's flags, `--config FILE`, `--machine SOURCE` and
/// `--print-state`, makes the plugin, and serves it or prints its state. Returns the exit code: 0
/// after a signal or the printing, 1 for what ended the plugin, 2 for a wrong command line or
/// configuration.
int PluginProgramMain(const std::string& default_resource, const PluginFactory& make, int argc,
                      char** argv);

}  // namespace qrm::config
