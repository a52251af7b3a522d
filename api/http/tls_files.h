// The certificate and key that a port is served with, as they are on disk now.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "api/base/sockets.h"
#include "api/base/status.h"

namespace qrm {

/// Reads the files again when one of them has changed, for certificates are renewed. What cannot
/// be read is logged once, and those of before go on to count.
///
/// Threads: one.
class TlsFiles {
 public:
  /// With `client_ca_file`, only peers are served whose certificate one of its authorities signed.
  TlsFiles(std::string certificate_file, std::string key_file, std::string client_ca_file = {})
      : certificate_file_(std::move(certificate_file)),
        key_file_(std::move(key_file)),
        client_ca_file_(std::move(client_ca_file)) {}

  /// Null as long as the files have never been good. Cost: a call of stat(2) for each, mostly.
  std::shared_ptr<boost::asio::ssl::context> Load();

  /// Whether the certificate that is served is for the DNS name.
  bool IsFor(const std::string& name);

 private:
  StatusOr<std::shared_ptr<boost::asio::ssl::context>> Read() const;

  const std::string certificate_file_;
  const std::string key_file_;
  const std::string client_ca_file_;  // empty: peers need no certificate
  std::string version_;               ///< of the files that were read last
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace qrm
