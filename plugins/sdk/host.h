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
  /// A host of `plugin`, which outlives it, for `resource`; the plugin has its former grants back
  /// when this returns. Errors: the state's or the plugin's from Restore; kInvalidArgument for an
  /// impossible resource name. `state_dir` is what the plugin begins with.
  static StatusOr<std::unique_ptr<PluginHost>> Create(ResourcePlugin& plugin,
                                                      const std::string& resource,
                                                      std::unique_ptr<PluginState> state,
                                                      const std::string& state_dir = "");

  /// Finishes the calls in progress, removes the socket, and leaves the plugin alone.
  ~PluginHost();
  PluginHost(const PluginHost&) = delete;
  PluginHost& operator=(const PluginHost&) = delete;

  const std::string& resource() const;
  /// What the plugin asks of the manager.
  const PluginOptions& options() const;

  /// Serves on a Unix socket at `path`; whoever sees the file can connect. May be called again when
  /// the file is gone: the new socket takes the place of the former one. Errors: kAlreadyExists
  /// when another process listens there, kNotFound when the directory is missing, kInvalidArgument
  /// for a path too long for a socket, kFailedPrecondition when the file cannot be made.
  Status Listen(const std::string& path);

  /// `listener` hears of every change of allocations that no call of the manager made; it must not
  /// block. The former one is not called any more when this returns; an empty one hears nothing.
  void OnChanged(std::function<void()> listener);

  /// Has `next`, the plugin with another configuration, serve from now on, with all that was given,
  /// as after a restart. Errors: why it cannot; all is as before then.
  Status Replace(std::unique_ptr<ResourcePlugin> next);

  /// True when the file at the path of the last Listen is the socket it made.
  bool SocketInPlace() const;

 private:
  struct Impl;
  explicit PluginHost(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::sdk
