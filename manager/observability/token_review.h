// Asks the API server whether the owner of a token may read what qrmd serves.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "api/http/https_call.h"

namespace qrm::manager {

/// Whose tokens the API server knows (TokenReview) and whom it allows to get a path
/// (SubjectAccessReview), may. Answers count for a while.
///
/// Threads: that of `io`.
/// Source: authentication.k8s.io/v1, authorization.k8s.io/v1; what they ask is allowed by the
/// cluster role system:auth-delegator.
class TokenReview {
 public:
  struct Options {
    HttpsUrl api;
    std::string token_file;  ///< whose owner may ask; read again each time
    std::string ca_file;
    std::string what = "metrics";  ///< that is guarded, in messages
    std::string path = "/metrics";
    std::chrono::milliseconds timeout{5000};
    std::chrono::milliseconds yes_counts{60'000};
    std::chrono::milliseconds no_counts{10'000};
  };
  /// Runs once, on `io`, or at once.
  using Done = std::function<void(const Status& may)>;

  /// `io` outlives the review.
  TokenReview(boost::asio::io_context& io, Options options);

  /// OK when the owner of `token` may read. Errors: kUnauthenticated for a token that is
  /// missing or unknown, kPermissionDenied for an owner who may not, kUnavailable when the API
  /// server does not tell or too many wait for it.
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

}  // namespace qrm::manager
