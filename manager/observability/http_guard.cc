// Makes the guard of a port from the options.
#include "manager/observability/http_guard.h"

#include <utility>

namespace qrm::manager {

StatusOr<HttpGuard> MakeGuard(boost::asio::io_context& io, const HttpOptions& options,
                              const Guarded& guarded) {
  HttpGuard guard;
  if (!options.certificate_file.empty()) {
    guard.security.tls = std::make_shared<TlsFiles>(options.certificate_file, options.key_file);
    guard.security.tls->Load();  // so that problems with the files are logged at the start
  }
  if (!options.review_url.empty()) {
    QRM_ASSIGN_OR_RETURN(HttpsUrl api, ParseHttpsUrl(options.review_url));
    guard.review = std::make_unique<TokenReview>(
        io, TokenReview::Options{.api = std::move(api),
                                 .token_file = options.review_token_file,
                                 .ca_file = options.review_ca_file,
                                 .what = guarded.what,
                                 .path = guarded.path});
    guard.security.gate = [review = guard.review.get()](const std::string& token,
                                                        const TokenReview::Done& done) {
      review->Check(token, done);
    };
  }
  return guard;
}

}  // namespace qrm::manager
