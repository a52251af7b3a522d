// Parses the addresses, so that what cannot be listened at is refused with the configuration.
#include "manager/observability/http_options.h"

#include <utility>

#include <boost/asio/ip/address.hpp>

#include "api/http/http_address.h"
#include "manager/kubelet/kubelet_options.h"

namespace qrm::manager {
namespace {

bool IsAny(const std::string& host) {
  boost::system::error_code error;
  return host.empty() || boost::asio::ip::make_address(host, error).is_unspecified();
}

}  // namespace

std::vector<config::ConfigKey> HttpKeys(HttpOptions& options) {
  return {
      HttpAddressKey("metrics-address", options.metrics_address,
                     "Where /metrics is served, to whoever reaches it."),
      config::TextKey("metrics-certificate-file", options.certificate_file,
                      "path; empty: without TLS",
                      "The certificate chain, in PEM, that metrics are served with over TLS (1.2 "
                      "or newer). Read again when it changes."),
      config::TextKey("metrics-key-file", options.key_file, "path", "Its private key, in PEM."),
      HttpsUrlKey("metrics-review-url", options.review_url, "https://10.96.0.1:443",
                  "The API server as this node reaches it: metrics are told only to bearers of "
                  "tokens that it knows and whose owners may get the "
                  "path /metrics. Empty: to whoever reaches them."),
      config::TextKey("metrics-review-token-file", options.review_token_file, "path",
                      "The token for metrics-review-url; its owner must have the ClusterRole "
                      "system:auth-delegator. Read again each time."),
      config::TextKey("metrics-review-ca-file", options.review_ca_file,
                      "path; empty: the system's authorities",
                      "The authority, in PEM, of the certificate at metrics-review-url."),
      HttpAddressKey("probe-address", options.probe_address,
                     "Where /healthz and /readyz are served, for kubelet's probes on the same "
                     "node."),
  };
}

Status CheckHttp(const HttpOptions& options) {
  if (options.certificate_file.empty() != options.key_file.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot serve metrics over TLS with one file of two; set both "
                  "metrics-certificate-file and metrics-key-file, or none");
  }
  if (!options.review_url.empty() && options.certificate_file.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot ask for tokens without TLS: whoever listens would have them; set "
                  "metrics-certificate-file and metrics-key-file beside metrics-review-url");
  }
  const StatusOr<HttpAddress> metrics = ParseHttpAddress(options.metrics_address);
  const StatusOr<HttpAddress> probes = ParseHttpAddress(options.probe_address);
  if (!metrics.ok() || !probes.ok() || metrics->port != probes->port || metrics->port == 0) {
    return OkStatus();
  }
  const bool overlap = metrics->host == probes->host || IsAny(metrics->host) || IsAny(probes->host);
  return overlap ? Errorf(StatusCode::kInvalidArgument,
                          "cannot serve metrics on {} and probes on {}: it is one port; give "
                          "metrics-address and probe-address one each",
                          options.metrics_address, options.probe_address)
                 : OkStatus();
}

}  // namespace qrm::manager
