// Controls access to a port of qrmd: TLS and tokens, as configured.
#pragma once

#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "api/http/http_session.h"
#include "manager/observability/http_options.h"
#include "manager/observability/token_review.h"

namespace qrm::manager {

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
