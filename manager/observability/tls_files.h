// The certificate and key that a port is served with, as they are on disk now.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <boost/asio/ssl/context.hpp>

#include "api/base/status.h"

namespace qrm::manager {

/// Reads both files again when one of them has changed, for certificates are renewed. What cannot
/// be read is logged once, and those of before go on to count.
///
/// Threads: one.
class TlsFiles {
 public:
  TlsFiles(std::string certificate_file, std::string key_file)
      : certificate_file_(std::move(certificate_file)), key_file_(std::move(key_file)) {}

  /// Null as long as the files have never been good. Cost: two calls of stat(2), mostly.
  std::shared_ptr<boost::asio::ssl::context> Load();

 private:
  StatusOr<std::shared_ptr<boost::asio::ssl::context>> Read() const;

  const std::string certificate_file_;
  const std::string key_file_;
  std::string version_;  ///< of the files that were read last
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace qrm::manager
