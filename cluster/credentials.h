// The token and the TLS settings of an API server's client, as its files are now.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "api/base/sockets.h"
#include "api/base/status.h"
#include "cluster/access.h"

namespace qrm::cluster {

/// Reads files again, because tokens and certificates are renewed: the token once a minute, and at
/// once after the server rejected it; certificates when they have changed.
///
/// Threads: one.
class Credentials {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Credentials(ClusterAccess access) : access_(std::move(access)) {}

  const ClusterAccess& access() const { return access_; }

  /// Empty when there is none. Errors: kFailedPrecondition for a file without a token.
  StatusOr<std::string> Token(Clock::time_point now = Clock::now());
  /// The server does not take the token any more.
  void DropToken() { read_at_ = Clock::time_point(); }

  /// Errors: kFailedPrecondition for files that cannot be used.
  StatusOr<std::shared_ptr<boost::asio::ssl::context>> Tls();

 private:
  StatusOr<std::shared_ptr<boost::asio::ssl::context>> MakeTls() const;

  const ClusterAccess access_;
  std::string token_;
  Clock::time_point read_at_;  // of token_
  std::string version_;        // of the files behind tls_
  std::shared_ptr<boost::asio::ssl::context> tls_;
};

}  // namespace qrm::cluster
