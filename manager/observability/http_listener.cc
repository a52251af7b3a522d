// Accepts whoever comes and lets HttpConnections decide who stays.
#include "manager/observability/http_listener.h"

#include <chrono>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "manager/observability/http_connections.h"

namespace qrm::manager {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kRequestTimeout{5};
constexpr std::chrono::milliseconds kPauseAfterError{100};
constexpr std::size_t kMaxRequestBytes = std::size_t{16} * 1024;

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
  constexpr std::size_t kNetworkBytes = 8;
  const auto bytes = v6.to_bytes();
  return {bytes.begin(), bytes.begin() + kNetworkBytes};
}

/// One connection: reads a request, writes its answer, closes. Owned by what is in flight.
class Session final : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const HttpHandler& handler,
          std::shared_ptr<HttpConnections> connections)
      : stream_(std::move(socket)), handler_(handler), connections_(std::move(connections)) {}
  ~Session() { connections_->Remove(id_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Run() {
    id_ = connections_->Add(PeerOf(stream_.socket()), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) {
        self->stream_.close();
      }
    });
    stream_.expires_after(kRequestTimeout);
    http::async_read(stream_, buffer_, request_,
                     [self = shared_from_this()](error_code error, std::size_t) {
                       if (!error) {
                         self->Write();
                       }
                     });
  }

 private:
  void Write() {
    connections_->BeginAnswer(id_);
    const auto target = request_.target();
    HttpAnswer answer = request_.method() == http::verb::get
                            ? handler_({target.data(), target.size()})
                            : HttpAnswer{405, "only GET is served here\n"};
    response_.result(static_cast<unsigned>(answer.status));
    response_.set(http::field::content_type, answer.type);
    response_.keep_alive(false);
    response_.body() = std::move(answer.body);
    response_.prepare_payload();
    http::async_write(stream_, response_,
                      [self = shared_from_this()](error_code, std::size_t) { self->Close(); });
  }

  void Close() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  beast::tcp_stream stream_;
  const HttpHandler& handler_;
  const std::shared_ptr<HttpConnections> connections_;
  HttpConnections::Id id_ = 0;
  beast::flat_buffer buffer_{kMaxRequestBytes};
  http::request<http::empty_body> request_;
  http::response<http::string_body> response_{http::status::ok, 11};
};

}  // namespace

struct HttpListener::Impl {
  Impl(asio::io_context& io, HttpHandler answer)
      : handler(std::move(answer)), acceptor(io), pause(io) {}

  error_code Bind(const tcp::endpoint& endpoint) {
    error_code error;
    acceptor.open(endpoint.protocol(), error);
    if (!error) {
      acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    }
    if (!error && endpoint.address().is_v6()) {
      const bool of_all = endpoint.address().is_unspecified();
      acceptor.set_option(asio::ip::v6_only(!of_all), error);
    }
    if (!error) {
      acceptor.bind(endpoint, error);
    }
    if (!error) {
      acceptor.listen(tcp::acceptor::max_listen_connections, error);
    }
    if (error) {
      error_code ignored;
      acceptor.close(ignored);
    }
    return error;
  }

  /// On the node whose kernel was started with ipv6.disable=1, the first fails.
  error_code BindToAll(uint16_t port) {
    error_code error = Bind({asio::ip::address_v6::any(), port});
    const bool no_v6 = error == asio::error::address_family_not_supported ||
                       error == boost::system::errc::address_not_available;
    return no_v6 ? Bind({asio::ip::address_v4::any(), port}) : error;
  }

  void Accept() {
    acceptor.async_accept([this](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) {
        return;
      }
      if (error) {
        AcceptLater();
        return;
      }
      std::make_shared<Session>(std::move(socket), handler, connections)->Run();
      Accept();
    });
  }

  /// Pause after the process ran out of descriptors, until others are closed.
  void AcceptLater() {
    pause.expires_after(kPauseAfterError);
    pause.async_wait([this](error_code error) {
      if (!error) {
        Accept();
      }
    });
  }

  const HttpHandler handler;
  /// Shared with the connections, some of which end with `io`, after the listener.
  const std::shared_ptr<HttpConnections> connections = std::make_shared<HttpConnections>();
  tcp::acceptor acceptor;
  asio::steady_timer pause;
};

HttpListener::HttpListener(asio::io_context& io, HttpHandler handler)
    : impl_(std::make_unique<Impl>(io, std::move(handler))) {}

HttpListener::~HttpListener() = default;

Status HttpListener::Listen(const HttpAddress& address, const std::string& key) {
  const error_code error = address.host.empty()
                               ? impl_->BindToAll(address.port)
                               : impl_->Bind({asio::ip::make_address(address.host), address.port});
  if (error) {
    return Errorf(StatusCode::kUnavailable,
                  "cannot listen on port {} of {}: {}; stop who listens there or set {}",
                  address.port, address.host.empty() ? "all addresses" : address.host,
                  error.message(), key);
  }
  impl_->Accept();
  return OkStatus();
}

void HttpListener::Close() {
  error_code ignored;
  impl_->acceptor.close(ignored);
}

int HttpListener::port() const {
  error_code ignored;
  const tcp::endpoint endpoint = impl_->acceptor.local_endpoint(ignored);
  return ignored ? 0 : endpoint.port();
}

}  // namespace qrm::manager
