// A connection to an HTTPS server, for one request after another and for answers without an end.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <openssl/types.h>

#include "api/base/io_context.h"
#include "api/base/sockets.h"
#include "api/base/status.h"
#include "api/http/https_url.h"

namespace qrm {

/// The SHA-256 of a certificate (DER), in hex.
std::string FingerprintOf(const X509* certificate);

/// The server that we call, and how it proves its identity.
struct HttpsPeer {
  HttpsUrl url;                ///< without its target
  std::string certified_name;  ///< what its certificate must be for; empty: the URL's host
  std::shared_ptr<boost::asio::ssl::context> tls;  ///< its authorities, our certificate if any
  /// Judges the peer by its certificate's fingerprint, in place of authorities. Nothing is sent
  /// before.
  std::function<Status(const std::string& fingerprint)> trusts;
};

struct HttpsMessage {
  std::string method = "GET";
  std::string target = "/";
  std::string bearer_token;  ///< empty: none
  std::string content_type;  ///< of `body`
  std::string body;
  std::string user_agent;                                 ///< empty: none
  std::size_t most_answer_bytes = std::size_t{32} << 20;  ///< of the answer's body, in Call
};

/// The beginning of an answer, or all of it.
struct HttpsAnswer {
  unsigned status = 0;
  std::optional<std::chrono::seconds> retry_after;
  std::string body;
};

/// One request at a time. An operation that fails ends the connection.
///
/// Threads: that of `io`. Lives, by itself, as long as an operation is under way.
/// Errors: kUnavailable without a server and for a connection that is cut, kDeadlineExceeded,
/// kFailedPrecondition for a certificate that does not hold, the error of `trusts`.
class HttpsConnection final {
 public:
  using Done = std::function<void(const Status&)>;

  /// `io` outlives it.
  HttpsConnection(boost::asio::io_context& io, HttpsPeer peer);
  /// Cuts the operation under way; its caller gets an error.
  ~HttpsConnection();
  HttpsConnection(const HttpsConnection&) = delete;
  HttpsConnection& operator=(const HttpsConnection&) = delete;

  void Open(std::chrono::milliseconds timeout, const Done& done);

  /// Sends the request and reads up to the body of its answer.
  void Begin(HttpsMessage message, std::chrono::milliseconds timeout,
             std::function<void(StatusOr<HttpsAnswer>)> done);
  /// The next part of the body as soon as there is one; empty at its end.
  void ReadSome(std::chrono::milliseconds timeout, std::function<void(StatusOr<std::string>)> done);
  /// The whole answer. Errors: also kResourceExhausted when it is larger than the message allows.
  void Call(HttpsMessage message, std::chrono::milliseconds timeout,
            std::function<void(StatusOr<HttpsAnswer>)> done);

  /// Whether it may carry another request: the last answer was read to its end.
  bool reusable() const;
  /// Cuts what is under way.
  void Close();

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace qrm
