// Serves HTTPS with a certificate made for the test.
#include "test/support/tls_kubelet.h"

#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "api/base/check.h"
#include "api/base/mutex.h"

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

}  // namespace

struct TlsKubelet::Impl {
  Impl() {
    context.use_certificate_chain(asio::buffer(identity.certificate));
    context.use_private_key(asio::buffer(identity.key), asio::ssl::context::pem);
    thread = std::thread([this] { Serve(); });
  }
  ~Impl() {
    {
      const MutexLock lock(mutex);
      stopped = true;
      changed.NotifyAll();
    }
    tcp::socket wake(io);
    error_code ignored;
    wake.connect(acceptor.local_endpoint(), ignored);
    thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool IsStopped() {
    const MutexLock lock(mutex);
    return stopped;
  }

  void Serve() {
    while (!IsStopped()) {
      asio::ssl::stream<tcp::socket> stream(io, context);
      error_code error;
      acceptor.accept(stream.lowest_layer(), error);
      if (!IsStopped() && !error) {
        stream.handshake(asio::ssl::stream_base::server, error);
      }
      if (!IsStopped() && !error) {
        Answer(stream);
      }
    }
  }

  void Answer(asio::ssl::stream<tcp::socket>& stream) {
    boost::beast::flat_buffer buffer;
    http::request<http::empty_body> request;
    error_code error;
    http::read(stream, buffer, request, error);
    if (error) {
      return;
    }
    http::response<http::string_body> response;
    {
      const MutexLock lock(mutex);
      changed.Wait(mutex, [this]() QRM_REQUIRES(mutex) { return !held || stopped; });
      const bool knows = request[http::field::authorization] == "Bearer " + token;
      const bool known = request.target() == "/pods";
      response.result(!knows ? 401U : known ? static_cast<unsigned>(status) : all ? 404U : 403U);
      response.body() = knows && known ? body : "";
      ++answered;
    }
    response.keep_alive(false);
    response.prepare_payload();
    http::write(stream, response, error);
    stream.shutdown(error);
  }

  const Identity identity = MakeIdentity();
  asio::io_context io;
  asio::ssl::context context{asio::ssl::context::tls_server};
  tcp::acceptor acceptor{io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};

  Mutex mutex;
  CondVar changed;
  bool stopped QRM_GUARDED_BY(mutex) = false;
  bool held QRM_GUARDED_BY(mutex) = false;
  std::string token QRM_GUARDED_BY(mutex);
  bool all QRM_GUARDED_BY(mutex) = false;
  int status QRM_GUARDED_BY(mutex) = 200;
  std::string body QRM_GUARDED_BY(mutex);
  int answered QRM_GUARDED_BY(mutex) = 0;

  std::thread thread;
};

TlsKubelet::TlsKubelet() : impl_(std::make_unique<Impl>()) {}
TlsKubelet::~TlsKubelet() = default;

int TlsKubelet::port() const {
  return impl_->acceptor.local_endpoint().port();
}

const std::string& TlsKubelet::certificate() const {
  return impl_->identity.certificate;
}

void TlsKubelet::SetToken(const std::string& token) {
  const MutexLock lock(impl_->mutex);
  impl_->token = token;
}

void TlsKubelet::AllowAll() {
  const MutexLock lock(impl_->mutex);
  impl_->all = true;
}

void TlsKubelet::SetAnswer(int status, const std::string& body) {
  const MutexLock lock(impl_->mutex);
  impl_->status = status;
  impl_->body = body;
}

void TlsKubelet::Hold() {
  const MutexLock lock(impl_->mutex);
  impl_->held = true;
}

void TlsKubelet::Release() {
  const MutexLock lock(impl_->mutex);
  impl_->held = false;
  impl_->changed.NotifyAll();
}

int TlsKubelet::answered() const {
  const MutexLock lock(impl_->mutex);
  return impl_->answered;
}

}  // namespace qrm::test
