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
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "api/base/check.h"

namespace qrm::test {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

struct Identity {
  std::string certificate;
  std::string key;
};

std::string TextOf(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(memory);
  return text;
}

void AddExtension(X509* certificate, int id, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value);
  QRM_CHECK(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

Identity MakeIdentity() {
  constexpr long kDay = 86'400;
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  QRM_CHECK(key != nullptr && certificate != nullptr);
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate), kDay);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  const auto* common_name = reinterpret_cast<const unsigned char*>("kubelet");
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, common_name, -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  AddExtension(certificate, NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(certificate, NID_subject_alt_name, "IP:127.0.0.1");
  QRM_CHECK(X509_sign(certificate, key, EVP_sha256()) > 0);

  BIO* certificate_text = BIO_new(BIO_s_mem());
  BIO* key_text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(certificate_text, certificate);
  PEM_write_bio_PrivateKey(key_text, key, nullptr, nullptr, 0, nullptr, nullptr);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return {.certificate = TextOf(certificate_text), .key = TextOf(key_text)};
}

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
  const Identity identity = MakeIdentity();
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
