// Who is let in at a port of qrmd: TLS and tokens, as configured.
#pragma once

#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "api/http/http_session.h"
#include "manager/observability/http_options.h"
#include "manager/observability/token_review.h"

namespace qrm::manager {

/// What a port needs to judge who connects; it outlives the port.
struct HttpGuard {
  std::unique_ptr<TokenReview> review;  ///< null: whoever connects may read
  HttpSecurity security;
};

/// What is guarded, as messages and as the API server name it.
struct Guarded {
  std::string what;
  std::string path;
};

/// `io` outlives the guard. Errors: kInvalidArgument for an address of the API server that is none.
StatusOr<HttpGuard> MakeGuard(boost::asio::io_context& io, const HttpOptions& options,
                              const Guarded& guarded);

}  // namespace qrm::manager
