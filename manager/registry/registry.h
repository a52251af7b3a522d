// All ways to register plugins: built in, by Register, or by a socket in the watched directory.
#pragma once

#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "manager/registry/endpoint_set.h"
#include "manager/registry/registration_service.h"
#include "manager/registry/socket_watcher.h"

namespace qrm::manager {

struct RegistryOptions {
  std::string registration_dir;  ///< has kubelet.sock and the sockets of plugins that call Register
  SocketWatcherOptions watcher;  ///< the watched directory
  EndpointSetOptions endpoints;
};

/// The plugins, the registration service and the socket watcher.
///
/// Threads: started and destroyed on the I/O loop or while it does not run; `plugins()` may be
/// called from any.
class Registry {
 public:
  /// `io` outlives the registry.
  Registry(boost::asio::io_context& io, RegistryOptions options);

  /// As EndpointSet::AddBuiltIn. Call it before Start, so that no other plugin takes the name.
  Status AddBuiltIn(const std::string& resource, LocalPlugin& plugin) {
    return endpoints_.AddBuiltIn(resource, plugin);
  }

  /// Begins to accept registrations. Errors: those of CheckPluginDirectory, of
  /// RegistrationService::Start and of SocketWatcher::Start.
  Status Start();

  Plugins& plugins() { return endpoints_; }

 private:
  const std::vector<std::string> directories_;  // of the plugins' sockets
  // Destroyed in reverse: no registration arrives at an endpoint set that is gone.
  EndpointSet endpoints_;
  RegistrationService registration_;
  SocketWatcher watcher_;
};

}  // namespace qrm::manager
