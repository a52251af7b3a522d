// Serves one ResourcePlugin over gRPC on a Unix socket.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/base/status.h"
#include "plugins/sdk/plugin_state.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {

/// A plugin as the manager sees it: the services resourceplugin.v1alpha1.ResourcePlugin,
/// pluginregistration.Registration and qrm.v1.PluginExtensions, the plugin's thread, its grants and
/// their state.
///
/// Threads: one at a time.
class PluginHost {
 public:
  /// A host of `plugin`, which must outlive it, for `resource`. When this returns, the plugin's
  /// grants are restored. `state_dir` is passed to the plugin's Begin. Errors: the state's, or the
  /// plugin's from Restore; kInvalidArgument for an impossible resource name.
  static StatusOr<std::unique_ptr<PluginHost>> Create(ResourcePlugin& plugin,
                                                      const std::string& resource,
                                                      std::unique_ptr<PluginState> state,
                                                      const std::string& state_dir = "");

  /// Finishes the calls in progress and removes the socket; the plugin stays as it is.
  ~PluginHost();
  PluginHost(const PluginHost&) = delete;
  PluginHost& operator=(const PluginHost&) = delete;

  const std::string& resource() const;
  /// What the plugin wants from the manager.
  const PluginOptions& options() const;

  /// Serves on a Unix socket at `path`; once the file is visible, clients can connect. May be
  /// called again when the file is gone: the new socket replaces the previous one. Errors:
  /// kAlreadyExists when another process listens there, kNotFound when the directory is missing,
  /// kInvalidArgument for a path too long for a socket, kFailedPrecondition when the file cannot be
  /// made.
  Status Listen(const std::string& path);

  /// `listener` is called after every change of allocations that no call of the manager made. It
  /// must not block and may be empty. The previous listener is not called after this returns.
  void OnChanged(std::function<void()> listener);

  /// Replaces the plugin by `next`, the plugin with another configuration, which gets all grants as
  /// after a restart. Errors: why it cannot; then nothing changes.
  Status Replace(std::unique_ptr<ResourcePlugin> next);

  /// True when the file at the path of the last Listen is still the socket that it created.
  bool SocketInPlace() const;

 private:
  struct Impl;
  explicit PluginHost(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::sdk
