// Serves HTTPS with a certificate made for the test.
#include "test/support/tls_server.h"

#include <atomic>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "test/support/tls_identity.h"

namespace qrm::test {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

std::string TextOf(boost::beast::string_view view) {
  return {view.data(), view.size()};
}

}  // namespace

struct TlsServer::Impl {
  explicit Impl(Handler answer) : handler(std::move(answer)) {
    context.use_certificate_chain(asio::buffer(identity.certificate));
    context.use_private_key(asio::buffer(identity.key), asio::ssl::context::pem);
    thread = std::thread([this] { Serve(); });
  }
  // NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the test.
  ~Impl() {
    stopped = true;
    tcp::socket wake(io);
    error_code ignored;
    wake.connect(acceptor.local_endpoint(), ignored);
    thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Serve() {
    while (!stopped) {
      asio::ssl::stream<tcp::socket> stream(io, context);
      error_code error;
      acceptor.accept(stream.lowest_layer(), error);
      if (!stopped && !error) {
        stream.handshake(asio::ssl::stream_base::server, error);
      }
      if (!stopped && !error) {
        Respond(stream);
      }
    }
  }

  void Respond(asio::ssl::stream<tcp::socket>& stream) const {
    boost::beast::flat_buffer buffer;
    http::request<http::string_body> request;
    error_code error;
    http::read(stream, buffer, request, error);
    if (error) {
      return;
    }
    Answer answer = handler({.path = TextOf(request.target()),
                             .authorization = TextOf(request[http::field::authorization]),
                             .body = request.body()});
    http::response<http::string_body> response;
    response.result(answer.status);
    response.body() = std::move(answer.body);
    response.keep_alive(false);
    response.prepare_payload();
    http::write(stream, response, error);
    stream.shutdown(error);
  }

  const Handler handler;
  const TlsIdentity identity = MakeTlsIdentity();
  asio::io_context io;
  asio::ssl::context context{asio::ssl::context::tls_server};
  tcp::acceptor acceptor{io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  std::atomic<bool> stopped = false;
  std::thread thread;
};

TlsServer::TlsServer(Handler handler) : impl_(std::make_unique<Impl>(std::move(handler))) {}
TlsServer::~TlsServer() = default;

int TlsServer::port() const {
  return impl_->acceptor.local_endpoint().port();
}

const std::string& TlsServer::certificate() const {
  return impl_->identity.certificate;
}

const std::string& TlsServer::key() const {
  return impl_->identity.key;
}

}  // namespace qrm::test
