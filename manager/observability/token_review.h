// Controls access to a port of qrmd, by TLS and tokens: asks the API server whether the owner of a
// token may read a path that qrmd serves.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "api/http/http_session.h"
#include "api/http/https_call.h"
#include "manager/observability/http_options.h"

namespace qrm::manager {

/// A client may read when the API server knows its token (TokenReview) and allows the token's owner
/// to get the path (SubjectAccessReview). Answers are cached for a while.
///
/// Threads: that of `io`.
/// Source: authentication.k8s.io/v1, authorization.k8s.io/v1. The cluster role
/// system:auth-delegator allows both reviews.
class TokenReview {
 public:
  struct Options {
    HttpsUrl api;
    std::string token_file;  ///< qrmd's own token; read again for each call
    std::string ca_file;
    std::string what = "metrics";  ///< the guarded service, in messages
    std::string path = "/metrics";
    std::chrono::milliseconds timeout{5000};
    std::chrono::milliseconds yes_counts{60'000};
    std::chrono::milliseconds no_counts{10'000};
  };
  /// Runs once, on `io`, or at once.
  using Done = std::function<void(const Status& may)>;

  /// `io` outlives the review.
  TokenReview(boost::asio::io_context& io, Options options);

  /// OK when the owner of `token` may read. Errors: kUnauthenticated for a missing or unknown
  /// token, kPermissionDenied for an owner without permission, kUnavailable when the API server
  /// does not answer or too many reviews wait for it.
  void Check(const std::string& token, const Done& done);

 private:
  struct Known {
    Status may;
    std::chrono::steady_clock::time_point until;
  };
  using Answer = std::function<void(StatusOr<std::string>)>;

  void Ask(const char* path, std::string json, const Answer& answer);
  Status Unavailable(const std::string& cause) const;
  void CheckAccess(const std::string& reviewed, const Done& done);
  void Remember(const std::string& digest, const Status& may);

  boost::asio::io_context& io_;
  const Options options_;
  std::map<std::string, Known> known_;  // by the token's SHA-256
  int asking_ = 0;
};

/// TLS and token review for one port; it outlives the port.
struct HttpGuard {
  std::unique_ptr<TokenReview> review;  ///< null: every client may read
  HttpSecurity security;
};

/// The guarded service: its name in messages, and its path for the API server.
struct Guarded {
  std::string what;
  std::string path;
};

/// `io` outlives the guard. Errors: kInvalidArgument for an invalid address of the API server.
StatusOr<HttpGuard> MakeGuard(boost::asio::io_context& io, const HttpOptions& options,
                              const Guarded& guarded);

}  // namespace qrm::manager
