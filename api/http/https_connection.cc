// Runs a chain of asynchronous steps: resolve, connect, handshake, then write and read.
#include "api/http/https_connection.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "api/base/errorf.h"
#include "api/base/number.h"

namespace qrm {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;

/// More of a body is reserved only once so much has come.
constexpr std::size_t kReservedBytes = std::size_t{32} << 20;
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
constexpr unsigned kHttp11 = 11;

std::string HostField(const HttpsUrl& url) {
  const bool is_v6 = url.host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", url.host, url.port)
               : fmt::format("{}:{}", url.host, url.port);
}

http::request<http::string_body> RequestOf(HttpsMessage message, const HttpsUrl& url) {
  http::request<http::string_body> request;
  request.method_string(message.method);
  request.target(message.target);
  request.version(kHttp11);
  request.set(http::field::host, HostField(url));
  request.set(http::field::accept, "application/json");
  if (!message.user_agent.empty()) {
    request.set(http::field::user_agent, message.user_agent);
  }
  if (!message.bearer_token.empty()) {
    request.set(http::field::authorization, "Bearer " + message.bearer_token);
  }
  if (!message.body.empty()) {
    request.set(http::field::content_type, message.content_type);
    request.body() = std::move(message.body);
  }
  request.prepare_payload();
  return request;
}

std::optional<std::chrono::seconds> RetryAfterIn(const http::fields& fields) {
  const auto field = fields[http::field::retry_after];
  const auto seconds = ParseNumber<unsigned>(std::string(field.data(), field.size()));
  return seconds.has_value() ? std::optional(std::chrono::seconds(*seconds)) : std::nullopt;
}

}  // namespace

struct HttpsConnection::Impl final : std::enable_shared_from_this<Impl> {
  using OnAnswer = std::function<void(StatusOr<HttpsAnswer>)>;
  using OnPiece = std::function<void(StatusOr<std::string>)>;

  Impl(asio::io_context& io, HttpsPeer whom)
      : peer(std::move(whom)), resolver(io), stream(io, *peer.tls) {}

  beast::tcp_stream& Lowest() { return beast::get_lowest_layer(stream); }

  Status Failure(const error_code& error, const char* step) {
    Close();
    const bool late = error == beast::error::timeout;
    const bool untrusted = error.category() == asio::error::get_ssl_category();
    return Errorf(late        ? StatusCode::kDeadlineExceeded
                  : untrusted ? StatusCode::kFailedPrecondition
                              : StatusCode::kUnavailable,
                  "cannot {} https://{}: {}", step, HostField(peer.url), error.message());
  }

  void Open(std::chrono::milliseconds timeout, const Done& done) {
    stream.set_verify_mode(peer.trusts ? ssl::verify_none : ssl::verify_peer);
    const std::string& name = peer.certified_name.empty() ? peer.url.host : peer.certified_name;
    if (!peer.trusts) {
      stream.set_verify_callback(ssl::host_name_verification(name));
    }
    error_code is_name;  // only names are announced, addresses are not
    asio::ip::make_address(name, is_name);
    if (is_name) {
      SSL_set_tlsext_host_name(stream.native_handle(), name.c_str());
    }
    Lowest().expires_after(timeout);
    resolver.async_resolve(
        peer.url.host, peer.url.port,
        [self = shared_from_this(), done](error_code error,
                                          const tcp::resolver::results_type& found) {
          if (error || self->closed) {
            done(self->Failure(error ? error : asio::error::operation_aborted, "find"));
          } else {
            self->Connect(found, done);
          }
        });
  }

  void Connect(const tcp::resolver::results_type& found, const Done& done) {
    Lowest().async_connect(found, [self = shared_from_this(), done](error_code error, const auto&) {
      if (error) {
        done(self->Failure(error, "connect to"));
        return;
      }
      error_code ignored;
      self->Lowest().socket().set_option(tcp::no_delay(true), ignored);
      self->Lowest().socket().set_option(asio::socket_base::keep_alive(true), ignored);
      self->Shake(done);
    });
  }

  void Shake(const Done& done) {
    stream.async_handshake(ssl::stream_base::client,
                           [self = shared_from_this(), done](error_code error) {
                             done(error ? self->Failure(error, "trust") : self->Judge());
                           });
  }

  Status Judge() {
    const X509* const certificate =
        peer.trusts ? SSL_get0_peer_certificate(stream.native_handle()) : nullptr;
    Status trusted = certificate == nullptr ? OkStatus() : peer.trusts(FingerprintOf(certificate));
    if (!trusted.ok()) {
      Close();
    }
    return trusted;
  }

  void Begin(HttpsMessage message, std::chrono::milliseconds timeout, OnAnswer done) {
    most_answer_bytes = message.most_answer_bytes;
    request = RequestOf(std::move(message), peer.url);
    parser = std::make_unique<http::response_parser<http::buffer_body>>();
    parser->body_limit(boost::none);
    reusable = false;
    Lowest().expires_after(timeout);
    http::async_write(
        stream, request,
        [self = shared_from_this(), done = std::move(done)](error_code error, std::size_t) {
          if (error) {
            done(self->Failure(error, "ask"));
          } else {
            self->ReadHeader(done);
          }
        });
  }

  void ReadHeader(const OnAnswer& done) {
    http::async_read_header(
        stream, buffer, *parser, [self = shared_from_this(), done](error_code error, std::size_t) {
          if (error) {
            done(self->Failure(error, "read from"));
            return;
          }
          const auto& header = self->parser->get();
          HttpsAnswer answer{.status = header.result_int(), .retry_after = RetryAfterIn(header)};
          // Growing by copies, a large body would take twice its bytes.
          answer.body.reserve(
              std::min<uint64_t>(self->parser->content_length().value_or(0), kReservedBytes));
          done(std::move(answer));
        });
  }

  void ReadSome(std::chrono::milliseconds timeout, OnPiece done) {
    if (parser->is_done()) {
      reusable = parser->keep_alive();
      asio::post(resolver.get_executor(),
                 [self = shared_from_this(), done = std::move(done)] { done(std::string()); });
      return;
    }
    Lowest().expires_after(timeout);
    parser->get().body().data = piece.data();
    parser->get().body().size = piece.size();
    parser->get().body().more = true;
    http::async_read_some(stream, buffer, *parser,
                          [self = shared_from_this(), timeout, done = std::move(done)](
                              error_code error, std::size_t) mutable {
                            self->Take(error, timeout, std::move(done));
                          });
  }

  void Take(error_code error, std::chrono::milliseconds timeout, OnPiece done) {
    if (error && error != http::error::need_buffer) {
      done(Failure(error, "read from"));
      return;
    }
    const std::size_t size = piece.size() - parser->get().body().size;
    if (size == 0) {  // the end, or no more than the frame of a chunk
      ReadSome(timeout, std::move(done));
      return;
    }
    done(std::string(piece.data(), size));
  }

  void ReadAll(HttpsAnswer answer, std::chrono::milliseconds timeout, OnAnswer done) {
    ReadSome(timeout, [self = shared_from_this(), answer = std::move(answer), timeout,
                       done = std::move(done)](StatusOr<std::string> part) mutable {
      if (!part.ok()) {
        done(part.status());
      } else if (part->empty()) {
        done(std::move(answer));
      } else if (answer.body.size() + part->size() > self->most_answer_bytes) {
        self->Close();
        done(Errorf(StatusCode::kResourceExhausted,
                    "cannot read from https://{}: the answer has more than {} bytes; ask for less",
                    HostField(self->peer.url), self->most_answer_bytes));
      } else {
        answer.body += *part;
        self->ReadAll(std::move(answer), timeout, std::move(done));
      }
    });
  }

  void Close() {
    closed = true;
    reusable = false;
    resolver.cancel();
    Lowest().close();
  }

  const HttpsPeer peer;
  tcp::resolver resolver;
  beast::ssl_stream<beast::tcp_stream> stream;
  beast::flat_buffer buffer;
  http::request<http::string_body> request;
  std::unique_ptr<http::response_parser<http::buffer_body>> parser;
  std::array<char, kPieceBytes> piece{};
  std::size_t most_answer_bytes = 0;
  bool closed = false;
  bool reusable = false;
};

std::string FingerprintOf(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  X509_digest(certificate, EVP_sha256(), digest.data(), &size);
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + size, ""));
}

HttpsConnection::HttpsConnection(asio::io_context& io, HttpsPeer peer)
    : impl_(std::make_shared<Impl>(io, std::move(peer))) {}

HttpsConnection::~HttpsConnection() {
  impl_->Close();
}

void HttpsConnection::Open(std::chrono::milliseconds timeout, const Done& done) {
  impl_->Open(timeout, done);
}

void HttpsConnection::Begin(HttpsMessage message, std::chrono::milliseconds timeout,
                            std::function<void(StatusOr<HttpsAnswer>)> done) {
  impl_->Begin(std::move(message), timeout, std::move(done));
}

void HttpsConnection::ReadSome(std::chrono::milliseconds timeout,
                               std::function<void(StatusOr<std::string>)> done) {
  impl_->ReadSome(timeout, std::move(done));
}

void HttpsConnection::Call(HttpsMessage message, std::chrono::milliseconds timeout,
                           std::function<void(StatusOr<HttpsAnswer>)> done) {
  impl_->Begin(std::move(message), timeout,
               [self = impl_, timeout, done = std::move(done)](StatusOr<HttpsAnswer> answer) {
                 if (answer.ok()) {
                   self->ReadAll(*std::move(answer), timeout, done);
                 } else {
                   done(answer.status());
                 }
               });
}

bool HttpsConnection::reusable() const {
  return impl_->reusable;
}

void HttpsConnection::Close() {
  impl_->Close();
}

}  // namespace qrm
