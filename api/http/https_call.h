// Sends one HTTP request over TLS.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "api/http/https_url.h"

namespace qrm {

struct HttpsRequest {
  HttpsUrl url;
  std::string bearer_token;  ///< empty: none
  std::string ca_file;       ///< authorities in PEM; empty: the system's
  std::string json;          ///< what is sent by POST; empty: GET
  /// Judges the peer by its certificate's fingerprint, before anything is sent. Empty: an authority
  /// that we know must have signed the certificate for the URL's host.
  std::function<Status(const std::string& fingerprint)> trusts;
  std::chrono::milliseconds timeout{5000};
  /// What to do about it, as messages say.
  struct Remedies {
    std::string token_is_unknown;
    std::string token_may_not;
    std::string wrong_address;
    std::string no_authorities;  ///< in `ca_file`
  } remedies;
};

/// What the file holds beside spaces; nothing when it has no name. Errors: kFailedPrecondition for
/// a file without a token, which `key` of the configuration names.
StatusOr<std::string> ReadToken(const std::string& file, const std::string& key);

/// Calls `done` once on `io` with the body of the answer 200 or 201, of at most 64 MiB.
/// Errors: kUnauthenticated, kPermissionDenied, kNotFound and kUnimplemented for 401, 403, 404 and
/// 405, kUnavailable for every other answer and without a server, kDeadlineExceeded,
/// kFailedPrecondition for an unreadable `ca_file` and for a peer whose certificate does not hold,
/// the error of `trusts`.
void HttpsCall(boost::asio::io_context& io, const HttpsRequest& request,
               std::function<void(StatusOr<std::string>)> done);

}  // namespace qrm
