// Takes the registrations of plugins that dial us: resourceplugin.v1alpha1.Registration on
// kubelet.sock.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "manager/registry/endpoint_set.h"

namespace qrm::manager {

/// Serves <directory>/kubelet.sock; the plugins' sockets lie beside it.
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

  /// Makes the directory (0750) when it is missing, removes the sockets of former runs from it
  /// (plugins notice, and register again) and listens. Nothing but sockets is ever removed. Errors:
  /// kFailedPrecondition when somebody alive listens there; those of the file system.
  Status Start();
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
