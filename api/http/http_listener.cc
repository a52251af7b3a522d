// Accepts every connection and lets HttpConnections decide which are closed.
#include "api/http/http_listener.h"

#include <chrono>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>

#include "api/base/errorf.h"
#include "api/base/spare_handles.h"

namespace qrm {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kPauseAfterError{100};
constexpr std::chrono::milliseconds kRefillPeriod{500};

}  // namespace

struct HttpListener::Impl {
  Impl(asio::io_context& io, HttpHandler answer, const HttpRules& rules)
      : site(std::make_shared<HttpSite>(std::move(answer), rules)),
        acceptor(io),
        pause(io),
        refill(io) {}

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
      if (error && spares.Release()) {
        RefillLater();
        Accept();
        return;
      }
      if (error) {
        AcceptLater();
        return;
      }
      error_code ignored;  // else the last part of an answer may wait for the reader's kernel
      socket.set_option(tcp::no_delay(true), ignored);
      ServeHttp(std::move(socket), site);
      Accept();
    });
  }

  /// The answer to the connection that is accepted next may read files.
  void RefillLater() {
    refill.expires_after(kRefillPeriod);
    refill.async_wait([this](error_code error) {
      if (!error && !spares.Refill()) {
        RefillLater();
      }
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

  /// Shared with the connections, some of which end with `io`, after the listener.
  const std::shared_ptr<HttpSite> site;
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  asio::steady_timer refill;
  SpareHandles spares;
};

HttpListener::HttpListener(asio::io_context& io, HttpHandler handler, const HttpRules& rules)
    : impl_(std::make_unique<Impl>(io, std::move(handler), rules)) {}

HttpListener::~HttpListener() = default;

Status HttpListener::Listen(const HttpAddress& address, const std::string& key,
                            HttpSecurity security) {
  impl_->site->security = std::move(security);
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

}  // namespace qrm
