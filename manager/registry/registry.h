// Everything that makes plugins known: built in, by Register, or by a socket in the watched
// directory.
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
  std::string registration_dir;  ///< kubelet.sock and the sockets of plugins that register there
  SocketWatcherOptions watcher;  ///< the watched directory
  EndpointSetOptions endpoints;
};

/// The plugins and both ways to register them.
///
/// Threads: started and destroyed on the I/O loop or while it does not run; `plugins()` may be
/// called from any.
class Registry {
 public:
  /// `io` outlives the registry.
  Registry(boost::asio::io_context& io, RegistryOptions options);

  /// As EndpointSet::AddBuiltIn; before Start, so that no other takes the plugin's name.
  Status AddBuiltIn(const std::string& resource, PluginClient& plugin) {
    return endpoints_.AddBuiltIn(resource, plugin);
  }
  /// For plugins inside this process: the calls that end with the registry.
  const std::shared_ptr<rpc::CallsInFlight>& in_flight() const { return endpoints_.in_flight(); }

  /// Begins to take registrations. Errors: those of CheckPluginDirectory, of
  /// RegistrationService::Start and of SocketWatcher::Start.
  Status Start();

  Plugins& plugins() { return endpoints_; }

 private:
  const std::vector<std::string> directories_;  // where plugins put their sockets
  // Destroyed in reverse: no registration arrives at an endpoint set that is gone.
  EndpointSet endpoints_;
  RegistrationService registration_;
  SocketWatcher watcher_;
};

}  // namespace qrm::manager
