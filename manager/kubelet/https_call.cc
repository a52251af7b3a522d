// Implements the request as a chain of asynchronous steps: resolve, connect, handshake, write,
// read.
#include "manager/kubelet/https_call.h"

#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

namespace qrm::manager {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kMaxBodyBytes = std::size_t{64} << 20;

/// A request under way; owned by the operation in flight.
class Session final : public std::enable_shared_from_this<Session> {
 public:
  using Done = std::function<void(StatusOr<std::string>)>;

  Session(asio::io_context& io, HttpsRequest request, Done done)
      : request_(std::move(request)),
        done_(std::move(done)),
        resolver_(io),
        stream_(std::make_unique<beast::ssl_stream<beast::tcp_stream>>(io, context_)) {
    parser_.body_limit(kMaxBodyBytes);
  }

  void Run() {
    if (const Status prepared = Prepare(); !prepared.ok()) {
      asio::post(resolver_.get_executor(),
                 [self = shared_from_this(), prepared] { self->done_(prepared); });
      return;
    }
    Lowest().expires_after(request_.timeout);
    resolver_.async_resolve(
        request_.url.host, request_.url.port,
        [self = shared_from_this()](error_code error, tcp::resolver::results_type found) {
          self->Continue(error, "find", [&] { self->Connect(found); });
        });
  }

 private:
  beast::tcp_stream& Lowest() { return beast::get_lowest_layer(*stream_); }

  Status Prepare() {
    error_code error;
    if (!request_.trusts) {
      if (request_.ca_file.empty()) {
        context_.set_default_verify_paths(error);
      } else {
        context_.load_verify_file(request_.ca_file, error);
      }
      if (error) {
        return Errorf(StatusCode::kFailedPrecondition, "cannot read authorities from {}: {}; {}",
                      request_.ca_file, error.message(), request_.remedies.no_authorities);
      }
      stream_ = std::make_unique<beast::ssl_stream<beast::tcp_stream>>(resolver_.get_executor(),
                                                                       context_);
      stream_->set_verify_mode(ssl::verify_peer);
      stream_->set_verify_callback(ssl::host_name_verification(request_.url.host));
    } else {
      stream_->set_verify_mode(ssl::verify_none);
    }
    error_code is_name;  // only names are announced, addresses are not
    asio::ip::make_address(request_.url.host, is_name);
    if (is_name) {
      SSL_set_tlsext_host_name(stream_->native_handle(), request_.url.host.c_str());
    }
    return OkStatus();
  }

  template <typename Next>
  void Continue(const error_code& error, const char* step, Next next) {
    if (!error) {
      next();
      return;
    }
    const bool late = error == beast::error::timeout;
    const bool untrusted = error.category() == asio::error::get_ssl_category();
    done_(Errorf(late        ? StatusCode::kDeadlineExceeded
                 : untrusted ? StatusCode::kFailedPrecondition
                             : StatusCode::kUnavailable,
                 "cannot {} https://{}:{}: {}", step, request_.url.host, request_.url.port,
                 error.message()));
  }

  void Connect(const tcp::resolver::results_type& found) {
    Lowest().async_connect(found, [self = shared_from_this()](error_code error, const auto&) {
      self->Continue(error, "connect to", [&] { self->Shake(); });
    });
  }

  void Shake() {
    stream_->async_handshake(ssl::stream_base::client,
                             [self = shared_from_this()](error_code error) {
                               self->Continue(error, "trust", [&] { self->Judge(); });
                             });
  }

  void Judge() {
    const X509* const certificate =
        request_.trusts ? SSL_get0_peer_certificate(stream_->native_handle()) : nullptr;
    const Status trusted =
        certificate == nullptr ? OkStatus() : request_.trusts(FingerprintOf(certificate));
    if (!trusted.ok()) {
      done_(trusted);
      return;
    }
    Write();
  }

  void Write() {
    message_.method(request_.json.empty() ? http::verb::get : http::verb::post);
    message_.target(request_.url.target);
    message_.set(http::field::host, request_.url.host);
    message_.set(http::field::accept, "application/json");
    if (!request_.bearer_token.empty()) {
      message_.set(http::field::authorization, "Bearer " + request_.bearer_token);
    }
    if (!request_.json.empty()) {
      message_.set(http::field::content_type, "application/json");
      message_.body() = request_.json;
    }
    message_.keep_alive(false);
    message_.prepare_payload();
    http::async_write(*stream_, message_,
                      [self = shared_from_this()](error_code error, std::size_t) {
                        self->Continue(error, "ask", [&] { self->Read(); });
                      });
  }

  void Read() {
    http::async_read(*stream_, buffer_, parser_,
                     [self = shared_from_this()](error_code error, std::size_t) {
                       self->Continue(error, "read from", [&] { self->Finish(); });
                     });
  }

  void Finish() {
    error_code ignored;
    Lowest().socket().shutdown(tcp::socket::shutdown_both, ignored);
    http::response<http::string_body>& answer = parser_.get();
    if (answer.result() == http::status::ok || answer.result() == http::status::created) {
      done_(std::move(answer.body()));
      return;
    }
    const bool unknown = answer.result() == http::status::unauthorized;
    const bool forbidden = answer.result() == http::status::forbidden;
    const bool missing = answer.result() == http::status::not_found;
    done_(Errorf(unknown     ? StatusCode::kUnauthenticated
                 : forbidden ? StatusCode::kPermissionDenied
                 : missing   ? StatusCode::kNotFound
                             : StatusCode::kUnavailable,
                 "cannot read https://{}:{}{}: it answers {}; {}", request_.url.host,
                 request_.url.port, request_.url.target, answer.result_int(),
                 unknown     ? request_.remedies.token_is_unknown
                 : forbidden ? request_.remedies.token_may_not
                             : request_.remedies.wrong_address));
  }

  const HttpsRequest request_;
  const Done done_;
  ssl::context context_{ssl::context::tls_client};
  tcp::resolver resolver_;
  std::unique_ptr<beast::ssl_stream<beast::tcp_stream>> stream_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> message_;
  http::response_parser<http::string_body> parser_;
};

}  // namespace

StatusOr<std::string> ReadToken(const std::string& file, const std::string& key) {
  if (file.empty()) {
    return std::string();
  }
  constexpr char kSpaces[] = " \t\r\n";
  std::ifstream stream(file);
  const std::string text((std::istreambuf_iterator<char>(stream)),
                         std::istreambuf_iterator<char>());
  const auto begin = text.find_first_not_of(kSpaces);
  if (begin == std::string::npos) {
    return Errorf(StatusCode::kFailedPrecondition, "{} has no token; set {}", file, key);
  }
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

std::string FingerprintOf(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  X509_digest(certificate, EVP_sha256(), digest.data(), &size);
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + size, ""));
}

void HttpsCall(asio::io_context& io, const HttpsRequest& request,
               std::function<void(StatusOr<std::string>)> done) {
  std::make_shared<Session>(io, request, std::move(done))->Run();
}

}  // namespace qrm::manager
