// Knows kubelet by its certificate, where no authority vouches for it.
#pragma once

#include <string>
#include <utility>

#include "api/base/status.h"

namespace qrm::manager {

/// Where the certificate is known from; with none of the two, an authority has to vouch for it.
struct PinOptions {
  std::string given_file;  ///< kubelet's own certificate in PEM, read again each time
  std::string kept_file;   ///< where the fingerprint of the first one that is met is kept
};

/// Tells whether a server is the kubelet that is meant, by the SHA-256 of its certificate (DER), in
/// hex.
///
/// Threads: one.
class CertificatePin {
 public:
  explicit CertificatePin(PinOptions options) : options_(std::move(options)) {}

  bool is_set() const { return !options_.given_file.empty() || !options_.kept_file.empty(); }

  /// OK for the certificate of `given_file`; without that, for the one of `kept_file`, which is
  /// made of `fingerprint` when it is missing. Errors: kFailedPrecondition for another certificate
  /// and for files that cannot be read or written, with what to do.
  Status Check(const std::string& fingerprint) const;

 private:
  const PinOptions options_;
};

}  // namespace qrm::manager
