// Makes TLS contexts of PEM files.
#include "manager/observability/tls_files.h"

#include <sys/stat.h>

#include <fmt/format.h>
#include <openssl/ssl.h>

#include "api/base/log.h"

namespace qrm::manager {
namespace {

namespace ssl = boost::asio::ssl;

/// Differs when the file does. A secret that is mounted is replaced by another file.
std::string VersionOf(const std::string& file) {
  struct stat now{};
  if (::stat(file.c_str(), &now) != 0) {
    return "none";
  }
  return fmt::format("{}:{}:{}.{}", now.st_ino, now.st_size, now.st_mtim.tv_sec,
                     now.st_mtim.tv_nsec);
}

}  // namespace

std::shared_ptr<ssl::context> TlsFiles::Load() {
  std::string version = VersionOf(certificate_file_) + " " + VersionOf(key_file_);
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

StatusOr<std::shared_ptr<ssl::context>> TlsFiles::Read() const {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  boost::system::error_code error;
  context->use_certificate_chain_file(certificate_file_, error);
  if (!error) {
    context->use_private_key_file(key_file_, ssl::context::pem, error);
  }
  if (!error) {
    return context;
  }
  return Errorf(StatusCode::kFailedPrecondition,
                "cannot serve TLS with {} and {}: {}; put a certificate and its key there, in PEM",
                certificate_file_, key_file_, error.message());
}

}  // namespace qrm::manager
