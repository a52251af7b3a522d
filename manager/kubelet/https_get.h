// Sends one HTTP GET over TLS.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "api/base/status.h"
#include "manager/kubelet/https_url.h"

namespace qrm::manager {

enum class PeerCheck {
  kCertificate,  ///< the peer's certificate must be for the URL's host, by an authority we know
  kNone,         ///< any peer is accepted
};

struct HttpsRequest {
  HttpsUrl url;
  std::string bearer_token;  ///< empty: none
  PeerCheck check = PeerCheck::kCertificate;
  std::string ca_file;  ///< authorities in PEM; empty: the system's
  std::chrono::milliseconds timeout{5000};
};

/// Calls `done` once on `io` with the body of the answer 200, of at most 64 MiB.
/// Errors: kUnauthenticated and kPermissionDenied for 401 and 403, kUnavailable for every other
/// answer and for nobody there, kDeadlineExceeded, kFailedPrecondition for an unreadable `ca_file`
/// and for a peer whose certificate does not hold.
void HttpsGet(boost::asio::io_context& io, const HttpsRequest& request,
              std::function<void(StatusOr<std::string>)> done);

}  // namespace qrm::manager
