// Serves the registration of plugins: resourceplugin.v1alpha1.Registration on kubelet.sock.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "manager/registry/endpoint_set.h"

namespace qrm::manager {

/// Serves <directory>/kubelet.sock; the plugins' sockets are in the same directory.
///
/// Threads: Start and Stop from one thread.
/// Source: Katalyst's resource plugin registration, "direct path".
class RegistrationService {
 public:
  /// `endpoints` outlives the service.
  RegistrationService(std::string directory, EndpointSet& endpoints);
  ~RegistrationService();
  RegistrationService(const RegistrationService&) = delete;
  RegistrationService& operator=(const RegistrationService&) = delete;

  /// Creates the directory (0750) if it is missing, removes the sockets of former runs from it, and
  /// listens. Plugins notice the removal and register again. Only sockets are ever removed. Errors:
  /// kFailedPrecondition when another process listens there; those of the file system.
  Status Start();
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
