// A plugin inside this process, called directly.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/sdk/calls/call.h"

namespace qrm::sdk {
class PluginDriver;
class PluginState;
class ResourcePlugin;
}  // namespace qrm::sdk

namespace qrm::manager {

/// A plugin with its grants and their state: like sdk::PluginHost, for callers in the same process.
/// Its calls compute only, one at a time, on the caller's thread: work that may hang is never part
/// of a call.
///
/// Threads: any.
class LocalPlugin {
 public:
  /// Runs `plugin`, which outlives the result, for `resource`. When this returns, its former grants
  /// are restored. `state_dir` is passed to the plugin's Begin; empty: none. Errors: the state's,
  /// or the plugin's from Restore.
  static StatusOr<std::unique_ptr<LocalPlugin>> Start(sdk::ResourcePlugin& plugin,
                                                      const std::string& resource,
                                                      std::unique_ptr<sdk::PluginState> state,
                                                      std::string state_dir = "");
  ~LocalPlugin();
  LocalPlugin(const LocalPlugin&) = delete;
  LocalPlugin& operator=(const LocalPlugin&) = delete;

  /// What the plugin wants from the manager.
  const PluginOptions& options() const { return options_; }

  /// Calls `listener` for every change of allocations that the call in progress, if there is one,
  /// does not return: it must only post. It replaces the former listener, which is not called any
  /// more when this returns. It may be empty.
  void OnChanged(std::function<void()> listener);

  /// The plugin as it is, for new containers only: what the fork allocates stays in the fork. Null
  /// if the plugin has no fork.
  std::unique_ptr<LocalPlugin> Fork();

  /// Runs `task` between calls, with the plugin's driver. It must not throw, nor call this.
  void Run(const std::function<void(sdk::PluginDriver& driver)>& task);

  /// The plugin's answer to the call that `C` describes. Errors: the plugin's.
  template <typename C>
  StatusOr<typename C::Answer> Answer(const typename C::Request& request) {
    const MutexLock lock(mutex_);
    return calls::CallTo<C>::Serve(*driver_, request);
  }

 private:
  LocalPlugin(sdk::ResourcePlugin& plugin, std::unique_ptr<sdk::PluginDriver> driver,
              const PluginOptions& options);

  std::unique_ptr<sdk::ResourcePlugin> fork_;  ///< plugin_ if this is a fork
  sdk::ResourcePlugin& plugin_;
  Mutex mutex_;
  const std::unique_ptr<sdk::PluginDriver> driver_ QRM_PT_GUARDED_BY(mutex_);
  const PluginOptions options_;
};

}  // namespace qrm::manager
