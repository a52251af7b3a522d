// Reviews each unknown token with two calls to the API server, and caches the answers.
#include "manager/observability/token_review.h"

#include <array>
#include <utility>

#include <nlohmann/json.hpp>
#include <openssl/evp.h>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"

namespace qrm::manager {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

/// Bounds the API server's time and qrmd's memory that clients with invented tokens can use.
constexpr int kAskingAtOnce = 4;
constexpr std::size_t kKnown = 64;
constexpr char kTokenReviews[] = "/apis/authentication.k8s.io/v1/tokenreviews";
constexpr char kAccessReviews[] = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

std::string DigestOf(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return {digest.begin(), digest.begin() + size};
}

/// The review's status; null for text that is not a review.
json StatusIn(const std::string& review) {
  const json parsed = ParseJson(review).value_or(json());
  return parsed.is_object() && parsed.contains("status") && parsed["status"].is_object()
             ? parsed["status"]
             : json();
}

bool Says(const json& status, const char* key) {
  return status.contains(key) && status[key].is_boolean() && status[key].get<bool>();
}

std::string TokenQuestion(const std::string& token) {
  return json{{"apiVersion", "authentication.k8s.io/v1"},
              {"kind", "TokenReview"},
              {"spec", {{"token", token}}}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The question whether `user`, as in a TokenReview, may get `path`.
std::string AccessQuestion(const json& user, const std::string& path) {
  json spec = {{"nonResourceAttributes", {{"path", path}, {"verb", "get"}}}};
  for (const char* name : {"uid", "groups", "extra"}) {
    if (user.contains(name)) {
      spec[name] = user[name];
    }
  }
  if (user.contains("username")) {
    spec["user"] = user["username"];
  }
  return json{{"apiVersion", "authorization.k8s.io/v1"},
              {"kind", "SubjectAccessReview"},
              {"spec", std::move(spec)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

TokenReview::TokenReview(boost::asio::io_context& io, Options options)
    : io_(io), options_(std::move(options)) {}

Status TokenReview::Unavailable(const std::string& cause) const {
  return Errorf(StatusCode::kUnavailable, "cannot check the token for {}: {}; try again",
                options_.what, cause);
}

void TokenReview::Check(const std::string& token, const Done& done) {
  if (token.empty()) {
    done(Errorf(StatusCode::kUnauthenticated,
                "cannot serve {} without a token; send one as Authorization: Bearer TOKEN",
                options_.what));
    return;
  }
  const std::string digest = DigestOf(token);
  if (const auto found = known_.find(digest);
      found != known_.end() && steady_clock::now() < found->second.until) {
    done(found->second.may);
    return;
  }
  if (asking_ == kAskingAtOnce) {
    done(Unavailable("too many other clients wait for the API server"));
    return;
  }
  ++asking_;
  const Done finish = [this, digest, done](const Status& may) {
    --asking_;
    Remember(digest, may);
    done(may);
  };
  Ask(kTokenReviews, TokenQuestion(token), [this, finish](const StatusOr<std::string>& review) {
    if (review.ok()) {
      CheckAccess(*review, finish);
    } else {
      finish(Unavailable(MessageOf(review.status())));
    }
  });
}

void TokenReview::CheckAccess(const std::string& reviewed, const Done& done) {
  const json status = StatusIn(reviewed);
  if (!Says(status, "authenticated") || !status.contains("user") || !status["user"].is_object()) {
    done(Errorf(StatusCode::kUnauthenticated,
                "cannot serve {}: the API server does not know the token; send a valid token",
                options_.what));
    return;
  }
  Ask(kAccessReviews, AccessQuestion(status["user"], options_.path),
      [this, done](const StatusOr<std::string>& review) {
        if (!review.ok()) {
          done(Unavailable(MessageOf(review.status())));
        } else if (Says(StatusIn(*review), "allowed")) {
          done(OkStatus());
        } else {
          done(Errorf(StatusCode::kPermissionDenied,
                      "cannot serve {}: the token's owner has no permission; allow the verb get on "
                      "the nonResourceURL {} in a ClusterRole",
                      options_.what, options_.path));
        }
      });
}

void TokenReview::Ask(const char* path, std::string json, const Answer& answer) {
  StatusOr<std::string> token = ReadToken(options_.token_file, "metrics-review-token-file");
  if (!token.ok()) {
    answer(token.status());
    return;
  }
  HttpsRequest request{
      .url = options_.api,
      .bearer_token = *std::move(token),
      .ca_file = options_.ca_file,
      .json = std::move(json),
      .timeout = options_.timeout,
      .remedies = {
          .token_is_unknown = "set metrics-review-token-file to a token that it accepts",
          .token_may_not = "bind the token's owner to the ClusterRole system:auth-delegator",
          .wrong_address = "set metrics-review-url to the API server's address",
          .no_authorities = "set metrics-review-ca-file"}};
  request.url.target = path;
  HttpsCall(io_, request, answer);
}

void TokenReview::Remember(const std::string& digest, const Status& may) {
  if (may.code() == StatusCode::kUnavailable) {
    return;
  }
  const auto now = steady_clock::now();
  std::erase_if(known_, [&](const auto& entry) { return entry.second.until <= now; });
  if (known_.size() >= kKnown) {
    std::erase_if(known_, [](const auto& entry) { return !entry.second.may.ok(); });
  }
  if (known_.size() < kKnown) {
    known_[digest] = {may, now + (may.ok() ? options_.yes_counts : options_.no_counts)};
  }
}

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
