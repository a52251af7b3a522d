// A plugin that serves and registers in the background: RunPlugin without signals, for other
// programs and for tests.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/base/status.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {

/// Serves one plugin with its settings, from Start until it is destroyed.
class RunningPlugin {
 public:
  /// `plugin` must outlive the result. Waits for a directory that is still missing. Errors:
  /// kInvalidArgument for impossible settings, kAlreadyExists when another process serves on the
  /// socket, and the errors of the state and of Restore.
  static StatusOr<std::unique_ptr<RunningPlugin>> Start(const PluginSettings& settings,
                                                        ResourcePlugin& plugin);
  ~RunningPlugin();
  RunningPlugin(const RunningPlugin&) = delete;
  RunningPlugin& operator=(const RunningPlugin&) = delete;

  /// See PluginHost::Replace. Threads: one at a time.
  Status Replace(std::unique_ptr<ResourcePlugin> next);

 private:
  struct Impl;
  explicit RunningPlugin(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

/// How a running plugin is recreated with a new configuration.
struct PluginMaking {
  std::string file;  ///< the watched configuration file; empty: none
  std::function<StatusOr<std::unique_ptr<ResourcePlugin>>()> make;  ///< empty: never recreated
};

/// RunPlugin that also replaces the plugin by the result of `making` at each SIGHUP and when the
/// file has changed. A failure is logged and changes nothing.
Status RunPlugin(const PluginSettings& settings, ResourcePlugin& plugin,
                 const PluginMaking& making);

/// The state database of `settings`: <state_dir>/<resource>_plugin.db, '/' as '_'.
std::string StatePath(const PluginSettings& settings);

}  // namespace qrm::sdk
