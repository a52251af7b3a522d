// Reads and keeps fingerprints of certificates.
#include "manager/kubelet/certificate_pin.h"

#include <cerrno>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <openssl/pem.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/http/https_connection.h"

namespace qrm::manager {
namespace {

template <typename T, void (*Free)(T*)>
struct Freed {
  void operator()(T* value) const { Free(value); }
};
void CloseBio(BIO* bio) {
  BIO_free(bio);
}
using BioPtr = std::unique_ptr<BIO, Freed<BIO, CloseBio>>;
using CertificatePtr = std::unique_ptr<X509, Freed<X509, X509_free>>;

StatusOr<std::string> FingerprintIn(const std::string& pem_file) {
  const BioPtr bio(BIO_new_file(pem_file.c_str(), "r"));
  const CertificatePtr certificate(
      bio == nullptr ? nullptr : PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot read kubelet's certificate from {}: the file has no PEM certificate; set "
                  "kubelet-certificate-file to kubelet's own, such as "
                  "/var/lib/kubelet/pki/kubelet.crt",
                  pem_file);
  }
  return FingerprintOf(certificate.get());
}

/// Absent if the file does not exist.
std::optional<std::string> KeptIn(const std::string& file) {
  std::ifstream stream(file);
  std::string fingerprint;
  if (!stream.is_open()) {
    return std::nullopt;
  }
  stream >> fingerprint;
  return fingerprint;
}

Status Keep(const std::string& fingerprint, const std::string& file) {
  constexpr mode_t kOwnersOnly = 0600;
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnersOnly);
  const std::string text = fingerprint + "\n";
  const bool written = fd >= 0 &&
                       ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) {
    ::close(fd);
  }
  if (!written) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot save the fingerprint of kubelet's certificate in {}: {}; make its "
                  "directory writable",
                  file, std::generic_category().message(error));
  }
  log::Info("kubelet's certificate is pinned", {{"sha256", fingerprint}, {"file", file}});
  return OkStatus();
}

}  // namespace

Status CertificatePin::Check(const std::string& fingerprint) const {
  if (!options_.given_file.empty()) {
    QRM_ASSIGN_OR_RETURN(const std::string given, FingerprintIn(options_.given_file));
    return given == fingerprint
               ? OkStatus()
               : Errorf(StatusCode::kFailedPrecondition,
                        "cannot trust kubelet: its certificate has sha256 {}, but the one in {} "
                        "has {}; set kubelet-certificate-file to kubelet's own",
                        fingerprint, options_.given_file, given);
  }
  const std::optional<std::string> kept = KeptIn(options_.kept_file);
  if (!kept.has_value()) {
    return Keep(fingerprint, options_.kept_file);
  }
  return *kept == fingerprint
             ? OkStatus()
             : Errorf(StatusCode::kFailedPrecondition,
                      "cannot trust kubelet: its certificate has sha256 {}, but the first one seen "
                      "had {}; if kubelet has a new certificate, remove {}",
                      fingerprint, *kept, options_.kept_file);
}

}  // namespace qrm::manager
