// Opens a connection for one request.
#include "api/http/https_call.h"

#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>

#include "api/base/errorf.h"
#include "api/base/text.h"
#include "api/http/https_connection.h"

namespace qrm {
namespace {

namespace ssl = boost::asio::ssl;

StatusOr<std::shared_ptr<ssl::context>> ContextFor(const HttpsRequest& request) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_client);
  if (request.trusts) {
    return context;
  }
  boost::system::error_code error;
  if (request.ca_file.empty()) {
    context->set_default_verify_paths(error);
  } else {
    context->load_verify_file(request.ca_file, error);
  }
  if (error) {
    return Errorf(StatusCode::kFailedPrecondition, "cannot read authorities from {}: {}; {}",
                  request.ca_file, error.message(), request.remedies.no_authorities);
  }
  return context;
}

HttpsMessage MessageFor(const HttpsRequest& request) {
  return {.method = request.json.empty() ? "GET" : "POST",
          .target = request.url.target,
          .bearer_token = request.bearer_token,
          .content_type = "application/json",
          .body = request.json};
}

constexpr unsigned kUnauthorized = 401;
constexpr unsigned kForbidden = 403;

StatusCode CodeOf(unsigned status) {
  constexpr unsigned kNotFound = 404;
  constexpr unsigned kMethodNotAllowed = 405;
  switch (status) {
    case kUnauthorized:
      return StatusCode::kUnauthenticated;
    case kForbidden:
      return StatusCode::kPermissionDenied;
    case kNotFound:
      return StatusCode::kNotFound;
    case kMethodNotAllowed:
      return StatusCode::kUnimplemented;
    default:
      return StatusCode::kUnavailable;
  }
}

StatusOr<std::string> BodyOf(StatusOr<HttpsAnswer> answer, const HttpsRequest& request) {
  constexpr unsigned kOk = 200;
  constexpr unsigned kCreated = 201;
  QRM_RETURN_IF_ERROR(answer.status());
  if (answer->status == kOk || answer->status == kCreated) {
    return std::move(answer->body);
  }
  return Errorf(CodeOf(answer->status), "cannot read https://{}:{}{}: it answers {}; {}",
                request.url.host, request.url.port, request.url.target, answer->status,
                answer->status == kUnauthorized ? request.remedies.token_is_unknown
                : answer->status == kForbidden  ? request.remedies.token_may_not
                                                : request.remedies.wrong_address);
}

}  // namespace

StatusOr<std::string> ReadToken(const std::string& file, const std::string& key) {
  if (file.empty()) {
    return std::string();
  }
  std::ifstream stream(file);
  const std::string text((std::istreambuf_iterator<char>(stream)),
                         std::istreambuf_iterator<char>());
  const std::string_view token = Trimmed(text);
  if (token.empty()) {
    return Errorf(StatusCode::kFailedPrecondition, "{} has no token; set {}", file, key);
  }
  return std::string(token);
}

void HttpsCall(boost::asio::io_context& io, const HttpsRequest& request,
               std::function<void(StatusOr<std::string>)> done) {
  StatusOr<std::shared_ptr<ssl::context>> context = ContextFor(request);
  if (!context.ok()) {
    boost::asio::post(io, [done = std::move(done), status = context.status()] { done(status); });
    return;
  }
  const auto connection = std::make_shared<HttpsConnection>(
      io, HttpsPeer{.url = request.url, .tls = *std::move(context), .trusts = request.trusts});
  connection->Open(request.timeout,
                   [connection, request, done = std::move(done)](const Status& open) {
                     if (!open.ok()) {
                       done(open);
                       return;
                     }
                     connection->Call(MessageFor(request), request.timeout,
                                      [connection, request, done](StatusOr<HttpsAnswer> answer) {
                                        done(BodyOf(std::move(answer), request));
                                      });
                   });
}

}  // namespace qrm
