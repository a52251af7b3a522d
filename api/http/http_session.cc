// Runs a connection with or without TLS.
#include "api/http/http_session.h"

#include <chrono>
#include <memory>
#include <type_traits>
#include <utility>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <fmt/format.h>

#include "api/base/foreign_text.h"
#include "api/base/rejected.h"

namespace qrm {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;

using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

constexpr std::chrono::seconds kRequestTimeout{5};
/// Twice what the API server may take, for it is asked two questions.
constexpr std::chrono::seconds kGateTimeout{10};
constexpr std::size_t kMaxHeaderBytes = std::size_t{16} * 1024;
constexpr char kBearer[] = "Bearer ";
constexpr unsigned kHttp11 = 11;

/// Who connects: an IPv4 address, however it is written, or the network that an IPv6 host has for
/// itself and may take any number of addresses from. Source: RFC 4291, 2.5.4.
std::string PeerOf(const tcp::socket& socket) {
  error_code error;
  const asio::ip::address address = socket.remote_endpoint(error).address();
  if (error || address.is_v4()) {
    return error ? std::string() : address.to_string();
  }
  const asio::ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, v6).to_string();
  }
  constexpr unsigned short kNetworkBits = 64;
  return asio::ip::network_v6(v6, kNetworkBits).canonical().to_string();
}

int StatusFor(const Status& may) {
  constexpr int kUnauthorized = 401;
  constexpr int kForbidden = 403;
  constexpr int kUnavailable = 503;
  return may.code() == StatusCode::kUnauthenticated    ? kUnauthorized
         : may.code() == StatusCode::kPermissionDenied ? kForbidden
                                                       : kUnavailable;
}

/// An owner of a session on any thread, which lets go of it on the session's own loop: there the
/// connections are counted.
template <typename Session>
class HeldElsewhere {
 public:
  explicit HeldElsewhere(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  ~HeldElsewhere() {
    Release([](const std::shared_ptr<Session>&) {});
  }
  HeldElsewhere(const HeldElsewhere&) = delete;
  HeldElsewhere& operator=(const HeldElsewhere&) = delete;

  /// Runs `last` with the session on its loop, once.
  template <typename Last>
  void Release(Last last) {
    if (session_ != nullptr) {
      const auto loop = session_->loop();
      asio::dispatch(loop, [session = std::move(session_), last = std::move(last)]() mutable {
        last(session);
      });
    }
  }

 private:
  std::shared_ptr<Session> session_;
};

/// Owned by what is in flight, and destroyed on its loop.
template <typename Stream>
class Session final : public std::enable_shared_from_this<Session<Stream>> {
 public:
  static constexpr bool kTls = std::is_same_v<Stream, TlsStream>;

  template <typename... More>
  Session(std::shared_ptr<HttpSite> site, std::shared_ptr<ssl::context> context, tcp::socket socket,
          More&... more)
      : site_(std::move(site)), context_(std::move(context)), stream_(std::move(socket), more...) {}
  ~Session() { site_->connections.Remove(id_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  auto loop() { return stream_.get_executor(); }

  void Run() {
    peer_ = PeerOf(Lowest().socket());
    id_ = site_->connections.Add(peer_, [weak = this->weak_from_this()] {
      if (const auto self = weak.lock()) {
        self->Lowest().close();
      }
    });
    Lowest().expires_after(kRequestTimeout);
    if constexpr (kTls) {
      stream_.async_handshake(ssl::stream_base::server,
                              [self = this->shared_from_this()](error_code error) {
                                if (!error) {
                                  self->Read();
                                } else if (error.category() == asio::error::get_ssl_category()) {
                                  self->Refuse(Rejected::kTlsHandshake, error);
                                }
                              });
    } else {
      Read();
    }
  }

 private:
  beast::tcp_stream& Lowest() { return beast::get_lowest_layer(stream_); }

  void Read() {
    parser_ = std::make_unique<http::request_parser<http::string_body>>();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(site_->rules.most_body_bytes);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = this->shared_from_this()](error_code error, std::size_t) {
                              if (!error) {
                                self->Lowest().expires_after(kRequestTimeout);
                                self->ReadBody();
                              } else {
                                self->CheckBounds(error);
                              }
                            });
  }

  /// In pieces, so that what has come so far is counted.
  void ReadBody() {
    if (parser_->is_done()) {
      Judge();
      return;
    }
    http::async_read_some(stream_, buffer_, *parser_,
                          [self = this->shared_from_this()](error_code error, std::size_t) {
                            const std::size_t bytes = self->parser_->get().body().size();
                            if (error) {
                              self->CheckBounds(error);
                            } else if (self->site_->connections.HoldBody(self->id_, bytes)) {
                              self->ReadBody();
                            }
                          });
  }

  void Refuse(Rejected kind, error_code error) const {
    Reject(kind,
           fmt::format("cannot serve {}: {}; see what it is", peer_, Quoted(error.message())));
  }

  void CheckBounds(error_code error) const {
    if (error == http::error::header_limit || error == http::error::body_limit) {
      Refuse(Rejected::kHttpRequest, error);
    }
  }

  void Judge() {
    site_->connections.BeginAnswer(id_);
    const HttpSecurity& security = site_->security;
    const auto target = parser_->get().target();
    if (!security.gate || (security.is_open && security.is_open({target.data(), target.size()}))) {
      Answer();
      return;
    }
    Lowest().expires_after(kGateTimeout);
    const std::string text = Header(http::field::authorization);
    const std::string token = text.starts_with(kBearer) ? text.substr(sizeof(kBearer) - 1) : "";
    security.gate(token, [self = this->shared_from_this()](const Status& may) {
      if (may.ok()) {
        self->Answer();
      } else {
        if (may.code() != StatusCode::kUnavailable) {
          Reject(Rejected::kHttpToken,
                 fmt::format("{} (asked by {})", MessageOf(may), self->peer_));
        }
        self->response_.set(http::field::www_authenticate, "Bearer");
        self->Write({StatusFor(may), MessageOf(may) + "\n"});
      }
    });
  }

  void Answer() {
    auto& request = parser_->get();
    const auto method = request.method_string();
    const auto target = request.target();
    site_->handler({.method = {method.data(), method.size()},
                    .target = {target.data(), target.size()},
                    .body = std::move(request.body()),
                    .host = Header(http::field::host),
                    .origin = Header(http::field::origin),
                    .content_type = Header(http::field::content_type),
                    .if_none_match = Header(http::field::if_none_match)},
                   [held = std::make_shared<HeldElsewhere<Session>>(this->shared_from_this())](
                       HttpAnswer answer) {
                     held->Release([answer = std::move(answer)](const auto& self) mutable {
                       self->Write(std::move(answer));
                     });
                   });
  }

  std::string Header(http::field name) const {
    const auto value = parser_->get()[name];
    return {value.data(), value.size()};
  }

  void Write(HttpAnswer answer) {
    const bool stays = site_->rules.after_answer == HttpRules::AfterAnswer::kKeepOpen &&
                       parser_->get().keep_alive();
    response_.result(static_cast<unsigned>(answer.status));
    response_.set(http::field::content_type, answer.type);
    for (const auto& [name, value] : answer.more_headers) {
      response_.set(name, value);
    }
    response_.keep_alive(stays);
    response_.body() = std::move(answer.body);
    response_.prepare_payload();
    Lowest().expires_after(kRequestTimeout);
    http::async_write(stream_, response_,
                      [self = this->shared_from_this(), stays](error_code error, std::size_t) {
                        if (stays && !error) {
                          self->AwaitNext();
                        } else {
                          self->Close();
                        }
                      });
  }

  void AwaitNext() {
    site_->connections.EndAnswer(id_);
    response_ = http::response<http::string_body>(http::status::ok, kHttp11);
    Lowest().expires_after(site_->rules.idle);
    Read();
  }

  void Close() {
    if constexpr (kTls) {
      stream_.async_shutdown([self = this->shared_from_this()](error_code) {});
    } else {
      error_code ignored;
      Lowest().socket().shutdown(tcp::socket::shutdown_send, ignored);
    }
  }

  const std::shared_ptr<HttpSite> site_;
  const std::shared_ptr<ssl::context> context_;  // null without TLS
  Stream stream_;
  std::string peer_;
  HttpConnections::Id id_ = 0;
  beast::flat_buffer buffer_;
  std::unique_ptr<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_{http::status::ok, kHttp11};
};

}  // namespace

HttpHandler AnswerGet(std::function<HttpAnswer(std::string_view path)> answer) {
  return [answer = std::move(answer)](const HttpQuestion& question, const HttpReply& reply) {
    constexpr int kNotAllowed = 405;
    reply(question.method == "GET" ? answer(question.target)
                                   : HttpAnswer{kNotAllowed, "only GET is served here\n"});
  };
}

void ServeHttp(tcp::socket socket, const std::shared_ptr<HttpSite>& site) {
  if (site->security.tls == nullptr) {
    std::make_shared<Session<PlainStream>>(site, nullptr, std::move(socket))->Run();
  } else if (std::shared_ptr<ssl::context> context = site->security.tls->Load()) {
    std::make_shared<Session<TlsStream>>(site, context, std::move(socket), *context)->Run();
  }  // else it is closed: there is no certificate yet
}

}  // namespace qrm
