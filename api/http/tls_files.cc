// Makes TLS contexts of PEM files.
#include "api/http/tls_files.h"

#include <boost/asio/ssl/context.hpp>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "api/base/changed_file.h"
#include "api/base/errorf.h"
#include "api/base/log.h"

namespace qrm {

namespace ssl = boost::asio::ssl;

std::shared_ptr<ssl::context> TlsFiles::Load() {
  std::string version = FileVersion(certificate_file_) + " " + FileVersion(key_file_) + " " +
                        FileVersion(client_ca_file_);
  if (version == version_) {
    return context_;
  }
  version_ = std::move(version);
  StatusOr<std::shared_ptr<ssl::context>> read = Read();
  if (read.ok()) {
    context_ = *std::move(read);
  } else {
    log::Warning("certificate cannot be served", {{"error", MessageOf(read.status())}});
  }
  return context_;
}

bool TlsFiles::IsFor(const std::string& name) {
  const std::shared_ptr<ssl::context> context = Load();
  X509* const certificate =
      context == nullptr ? nullptr : SSL_CTX_get0_certificate(context->native_handle());
  return certificate != nullptr && !name.empty() &&
         X509_check_host(certificate, name.c_str(), name.size(), 0, nullptr) == 1;
}

StatusOr<std::shared_ptr<ssl::context>> TlsFiles::Read() const {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  boost::system::error_code error;
  context->use_certificate_chain_file(certificate_file_, error);
  if (!error) {
    context->use_private_key_file(key_file_, ssl::context::pem, error);
  }
  if (!error && !client_ca_file_.empty()) {
    context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
    context->load_verify_file(client_ca_file_, error);
    if (error) {
      return Errorf(StatusCode::kFailedPrecondition,
                    "cannot serve TLS: {} has no authorities of clients: {}; put their "
                    "certificates there, in PEM",
                    client_ca_file_, error.message());
    }
  }
  if (!error) {
    return context;
  }
  return Errorf(StatusCode::kFailedPrecondition,
                "cannot serve TLS with {} and {}: {}; put a certificate and its key there, in PEM",
                certificate_file_, key_file_, error.message());
}

}  // namespace qrm
