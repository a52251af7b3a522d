// A plugin that serves and registers itself in the background: RunPlugin without the signals, for
// other programs and for tests.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/base/status.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {

/// Serves one plugin as its settings say, from Start until it is destroyed.
class RunningPlugin {
 public:
  /// `plugin` outlives the result. A directory that is still missing is waited for. Errors:
  /// kInvalidArgument for impossible settings, kAlreadyExists when another process serves on the
  /// socket, and those of the state and of Restore.
  static StatusOr<std::unique_ptr<RunningPlugin>> Start(const PluginSettings& settings,
                                                        ResourcePlugin& plugin);
  ~RunningPlugin();
  RunningPlugin(const RunningPlugin&) = delete;
  RunningPlugin& operator=(const RunningPlugin&) = delete;

  /// As PluginHost::Replace. Threads: one at a time.
  Status Replace(std::unique_ptr<ResourcePlugin> next);

 private:
  struct Impl;
  explicit RunningPlugin(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

/// How a plugin is made anew while it runs.
struct PluginMaking {
  std::string file;  ///< that is watched; empty: none
  std::function<StatusOr<std::unique_ptr<ResourcePlugin>>()> make;  ///< empty: it is not
};

/// RunPlugin, with what `making` makes in the plugin's place at each SIGHUP, and when its file has
/// changed. What cannot be made, or not take over, is logged and changes nothing.
Status RunPlugin(const PluginSettings& settings, ResourcePlugin& plugin,
                 const PluginMaking& making);

/// The state database of `settings`: <state_dir>/<resource>_plugin.db, '/' as '_'.
std::string StatePath(const PluginSettings& settings);

}  // namespace qrm::sdk
