// Makes TLS contexts of PEM texts and files.
#include "cluster/credentials.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>
#include <openssl/ssl.h>

#include "api/base/changed_file.h"
#include "api/base/errorf.h"
#include "api/http/https_call.h"

namespace qrm::cluster {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

constexpr std::chrono::minutes kTokenCounts{1};

error_code UseAuthorities(const Pem& pem, ssl::context& context) {
  error_code error;
  if (!pem.text.empty()) {
    context.add_certificate_authority(boost::asio::buffer(pem.text), error);
  } else if (!pem.file.empty()) {
    context.load_verify_file(pem.file, error);
  } else {
    context.set_default_verify_paths(error);
  }
  return error;
}

error_code UseCertificate(const ClusterAccess& access, ssl::context& context) {
  error_code error;
  if (!access.certificate.text.empty()) {
    context.use_certificate_chain(boost::asio::buffer(access.certificate.text), error);
  } else if (!access.certificate.file.empty()) {
    context.use_certificate_chain_file(access.certificate.file, error);
  }
  if (error) {
    return error;
  }
  if (!access.key.text.empty()) {
    context.use_private_key(boost::asio::buffer(access.key.text), ssl::context::pem, error);
  } else if (!access.key.file.empty()) {
    context.use_private_key_file(access.key.file, ssl::context::pem, error);
  }
  return error;
}

}  // namespace

StatusOr<std::string> Credentials::Token(Clock::time_point now) {
  if (access_.token_file.empty()) {
    return access_.token;
  }
  if (read_at_ == Clock::time_point() || now - read_at_ >= kTokenCounts) {
    QRM_ASSIGN_OR_RETURN(token_, ReadToken(access_.token_file, "a file that has one"));
    read_at_ = now;
  }
  return token_;
}

StatusOr<std::shared_ptr<ssl::context>> Credentials::Tls() {
  std::string version = FileVersion(access_.authorities.file) + " " +
                        FileVersion(access_.certificate.file) + " " + FileVersion(access_.key.file);
  if (tls_ == nullptr || version != version_) {
    QRM_ASSIGN_OR_RETURN(tls_, MakeTls());
    version_ = std::move(version);
  }
  return tls_;
}

StatusOr<std::shared_ptr<ssl::context>> Credentials::MakeTls() const {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  if (const error_code error = UseAuthorities(access_.authorities, *context)) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot read the server's authorities from {}: {}; put them there, in PEM",
                  access_.authorities.text.empty() ? access_.authorities.file : "the kubeconfig",
                  error.message());
  }
  if (const error_code error = UseCertificate(access_, *context)) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot use the client's certificate and key for the server: {}; check the "
                  "user's entry of the kubeconfig, or the files",
                  error.message());
  }
  return context;
}

}  // namespace qrm::cluster
