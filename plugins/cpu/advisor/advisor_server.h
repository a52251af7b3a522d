// Serves qrm.v1.Advisor on a socket.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "plugins/cpu/advisor/desk.h"

namespace qrm::cpu {

/// The socket of one desk, with mode 0600: for root and the plugin's own user.
class AdvisorServer {
 public:
  /// Creates the socket's directory if it is missing. `desk` outlives the server. Errors: those of
  /// a socket that cannot be created, with its path.
  static StatusOr<std::unique_ptr<AdvisorServer>> Start(const std::string& socket,
                                                        AdviceDesk& desk);
  /// Ends its calls, and removes the socket.
  ~AdvisorServer();
  AdvisorServer(const AdvisorServer&) = delete;
  AdvisorServer& operator=(const AdvisorServer&) = delete;

 private:
  struct Impl;
  explicit AdvisorServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::cpu
