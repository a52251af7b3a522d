// All ways to register plugins: built in, by Register, or by a socket in the watched directory.
#pragma once

#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "manager/registry/endpoint_set.h"
#include "manager/registry/socket_watcher.h"

namespace qrm::manager {

struct RegistryOptions {
  std::string registration_dir;  ///< has kubelet.sock and the sockets of plugins that call Register
  SocketWatcherOptions watcher;  ///< the watched directory
  EndpointSetOptions endpoints;
};

/// The plugins, the socket watcher, and resourceplugin.v1alpha1.Registration on kubelet.sock.
///
/// Threads: started and destroyed on the I/O loop or while it does not run; `plugins()` may be
/// called from any.
/// Source: Katalyst's resource plugin registration, "direct path".
class Registry {
 public:
  /// `io` outlives the registry.
  Registry(boost::asio::io_context& io, RegistryOptions options);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// As EndpointSet::AddBuiltIn. Call it before Start, so that no other plugin takes the name.
  Status AddBuiltIn(const std::string& resource, LocalPlugin& plugin);

  /// Begins to accept registrations: creates the directories (0750) if they are missing, removes
  /// the sockets of former runs from the registration directory, and listens. Plugins notice the
  /// removal and register again. Only sockets are ever removed. Errors: those of
  /// CheckPluginDirectory and of SocketWatcher::Start; kFailedPrecondition when another process
  /// listens there.
  Status Start();

  Plugins& plugins();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
