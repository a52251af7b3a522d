// The plugins that run inside qrmd: the same code as their programs, without sockets.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/section.h"
#include "api/base/status.h"
#include "plugins/sdk/plugin.h"
#include "topology/machine.h"

namespace qrm::manager {

/// The names of all plugins that can run inside.
std::vector<std::string> BuiltinNames();

struct BuiltinOptions {
  std::vector<std::string> plugins = BuiltinNames();  ///< those that do
  /// Plugin -> its keys, as that plugin reads them.
  std::map<std::string, config::Section> sections;
};

std::vector<config::ConfigKey> BuiltinKeys(BuiltinOptions& options);

/// A plugin, made but not running.
struct BuiltinPlugin {
  std::string resource;
  std::unique_ptr<sdk::ResourcePlugin> plugin;
};

/// The plugins that `options` ask for, on `machine`. Errors: kInvalidArgument with file, line and
/// key when a plugin's section is wrong or does not fit the machine.
StatusOr<std::vector<BuiltinPlugin>> MakeBuiltinPlugins(const BuiltinOptions& options,
                                                        const Machine& machine);

}  // namespace qrm::manager
