// Authenticates kubelet by its certificate, without a certificate authority.
#pragma once

#include <string>
#include <utility>

#include "api/base/status.h"

namespace qrm::manager {

/// The source of the expected certificate; without one, a certificate authority has to confirm it.
struct PinOptions {
  std::string given_file;  ///< kubelet's own certificate in PEM, read again each time
  std::string kept_file;   ///< has the fingerprint of the first certificate that kubelet served
};

/// Checks whether a server is the expected kubelet, by the SHA-256 of its certificate (DER), in
/// hex.
///
/// Threads: one.
class CertificatePin {
 public:
  explicit CertificatePin(PinOptions options) : options_(std::move(options)) {}

  bool is_set() const { return !options_.given_file.empty() || !options_.kept_file.empty(); }

  /// OK for the certificate of `given_file`; without that, for the one of `kept_file`, which is
  /// created with `fingerprint` when it is missing. Errors: kFailedPrecondition for another
  /// certificate and for files that cannot be read or written, with what to do.
  Status Check(const std::string& fingerprint) const;

 private:
  const PinOptions options_;
};

}  // namespace qrm::manager
