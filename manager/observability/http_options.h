// The options of the metrics, probe and page servers, with their defaults and keys.
#pragma once

#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/status.h"

namespace qrm::manager {

struct HttpOptions {
  std::string metrics_address = ":9753";         ///< empty: not served
  std::string probe_address = "127.0.0.1:9754";  ///< empty: not served
  std::string page_address;                      ///< empty: not served
  std::string certificate_file;                  ///< for metrics and the page; empty: no TLS
  std::string key_file;
  std::string review_url;  ///< of the API server; empty: every client may read
  std::string review_token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  std::string review_ca_file = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
};

/// Checks that the options fit together. Errors: kInvalidArgument when two addresses have the same
/// port, for a certificate without a key, for a key without a certificate, for tokens without TLS,
/// and for a page that other machines could read without a token.
Status CheckHttp(const HttpOptions& options);

std::vector<config::ConfigKey> HttpKeys(HttpOptions& options);

}  // namespace qrm::manager
