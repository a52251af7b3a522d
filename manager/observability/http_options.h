// Where metrics, probes and the page about the node are served: the options, their defaults and
// their keys.
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
  std::string certificate_file;                  ///< of metrics and the page; empty: without TLS
  std::string key_file;
  std::string review_url;  ///< of the API server; empty: whoever reaches them may read
  std::string review_token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  std::string review_ca_file = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
};

/// Whether all of it can be had together. Errors: kInvalidArgument when two addresses name one
/// port, for a certificate without its key or the other way round, for tokens that would be sent
/// without TLS, and for a page that other machines would see unasked.
Status CheckHttp(const HttpOptions& options);

std::vector<config::ConfigKey> HttpKeys(HttpOptions& options);

}  // namespace qrm::manager
