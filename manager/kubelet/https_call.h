// Sends one HTTP GET over TLS.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <openssl/types.h>

#include "api/base/status.h"
#include "manager/kubelet/https_url.h"

namespace qrm::manager {

/// The SHA-256 of a certificate (DER), in hex.
std::string FingerprintOf(const X509* certificate);

struct HttpsRequest {
  HttpsUrl url;
  std::string bearer_token;  ///< empty: none
  std::string ca_file;       ///< authorities in PEM; empty: the system's
  /// Judges the peer by its certificate's fingerprint, before anything is sent. Empty: an authority
  /// that we know must have signed the certificate for the URL's host.
  std::function<Status(const std::string& fingerprint)> trusts;
  std::chrono::milliseconds timeout{5000};
};

/// Calls `done` once on `io` with the body of the answer 200, of at most 64 MiB.
/// Errors: kUnauthenticated, kPermissionDenied and kNotFound for 401, 403 and 404, kUnavailable for
/// every other answer and for nobody there, kDeadlineExceeded, kFailedPrecondition for an
/// unreadable `ca_file` and for a peer whose certificate does not hold, the error of `trusts`.
void HttpsGet(boost::asio::io_context& io, const HttpsRequest& request,
              std::function<void(StatusOr<std::string>)> done);

}  // namespace qrm::manager
