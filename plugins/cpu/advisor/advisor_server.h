// Serves qrm.v1.Advisor on a socket.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "plugins/cpu/advisor/desk.h"

namespace qrm::cpu {

/// The socket of one desk, of mode 0600: root, and the plugin's own user.
class AdvisorServer {
 public:
  /// The socket's directory is made where it is missing. `desk` outlives the server. Errors: those
  /// of a socket that cannot be made, with its path.
  static StatusOr<std::unique_ptr<AdvisorServer>> Start(const std::string& socket,
                                                        AdviceDesk& desk);
  /// Ends its calls, and takes the socket away.
  ~AdvisorServer();
  AdvisorServer(const AdvisorServer&) = delete;
  AdvisorServer& operator=(const AdvisorServer&) = delete;

 private:
  struct Impl;
  explicit AdvisorServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::cpu
