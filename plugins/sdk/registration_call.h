// One call of Register, which another thread can cancel.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "api/resource.h"

namespace qrm::sdk {

/// What a plugin sends to the manager to register.
struct Announcement {
  std::string resource;
  std::string endpoint;  ///< the file name of the plugin's socket in the registration directory
  PluginOptions options;
};

/// A call of resourceplugin.v1alpha1.Registration/Register; the constructor starts it.
class RegistrationCall {
 public:
  RegistrationCall(const std::string& manager_socket, const Announcement& announcement);

  /// The manager's answer. Errors: the manager's; kUnavailable when no manager listens,
  /// kDeadlineExceeded when the manager does not answer. Call it once.
  Status Wait();

  /// Makes Wait return soon. Threads: any.
  void Cancel();

 private:
  struct InFlight;
  std::shared_ptr<InFlight> in_flight_;
};

}  // namespace qrm::sdk
