// Where metrics and probes are served: the options, their defaults and their keys.
#pragma once

#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/status.h"

namespace qrm::manager {

struct HttpOptions {
  std::string metrics_address = ":9753";         ///< empty: not served
  std::string probe_address = "127.0.0.1:9754";  ///< empty: not served
  std::string certificate_file;                  ///< of metrics; empty: without TLS
  std::string key_file;
  std::string review_url;  ///< of the API server; empty: whoever reaches metrics may read them
  std::string review_token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  std::string review_ca_file = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
};

/// Whether all of it can be had together. Errors: kInvalidArgument when both addresses name one
/// port, for a certificate without its key or the other way round, and for tokens that would be
/// sent without TLS.
Status CheckHttp(const HttpOptions& options);

std::vector<config::ConfigKey> HttpKeys(HttpOptions& options);

}  // namespace qrm::manager
