// Parses the addresses, so that a configuration with an unusable address is rejected.
#include "manager/observability/http_options.h"

#include <utility>

#include <boost/asio/ip/address.hpp>

#include "api/base/errorf.h"
#include "api/http/http_address.h"
#include "manager/kubelet/kubelet_options.h"

namespace qrm::manager {
namespace {

bool IsAny(const std::string& host) {
  boost::system::error_code error;
  return host.empty() || boost::asio::ip::make_address(host, error).is_unspecified();
}

bool AreOnePort(const HttpAddress& a, const HttpAddress& b) {
  return a.port != 0 && a.port == b.port && (a.host == b.host || IsAny(a.host) || IsAny(b.host));
}

/// Errors: kInvalidArgument with the two keys.
Status CheckPorts(const HttpOptions& options) {
  struct Server {
    const char* what;
    const char* key;
    const std::string& address;
  };
  const Server servers[] = {{"metrics", "metrics-address", options.metrics_address},
                            {"probes", "probe-address", options.probe_address},
                            {"the page", "page-address", options.page_address}};
  for (const Server& a : servers) {
    for (const Server& b : servers) {
      const StatusOr<HttpAddress> first = ParseHttpAddress(a.address);
      const StatusOr<HttpAddress> second = ParseHttpAddress(b.address);
      if (&a < &b && first.ok() && second.ok() && AreOnePort(*first, *second)) {
        return Errorf(StatusCode::kInvalidArgument,
                      "cannot serve {} on {} and {} on {}: both have the same port; set {} and {} "
                      "to different ports",
                      a.what, a.address, b.what, b.address, a.key, b.key);
      }
    }
  }
  return OkStatus();
}

/// The page names pods, so other machines need a token. Errors: kInvalidArgument.
Status CheckPage(const HttpOptions& options) {
  const StatusOr<HttpAddress> page = ParseHttpAddress(options.page_address);
  if (!page.ok() || IsLoopback(*page) || !options.review_url.empty()) {
    return OkStatus();
  }
  return Errorf(StatusCode::kInvalidArgument,
                "cannot serve the page at {}: it would show this node's pods to other machines; "
                "set page-address to a loopback address such as 127.0.0.1:9757, or set "
                "metrics-certificate-file, metrics-key-file and metrics-review-url, so that "
                "clients need a token",
                options.page_address);
}

}  // namespace

std::vector<config::ConfigKey> HttpKeys(HttpOptions& options) {
  return {
      HttpAddressKey("metrics-address", options.metrics_address,
                     "The address of /metrics. Every client that reaches it may read, unless "
                     "metrics-review-url is set."),
      config::TextKey(
          "metrics-certificate-file", options.certificate_file, "path; empty: without TLS",
          "The certificate chain, in PEM, for serving metrics and the page over TLS (1.2 or "
          "newer). Read again when it changes."),
      config::TextKey("metrics-key-file", options.key_file, "path",
                      "The private key of metrics-certificate-file, in PEM."),
      HttpsUrlKey("metrics-review-url", options.review_url, "https://10.96.0.1:443",
                  "The API server's address, as this node reaches it. Metrics are served only to "
                  "clients with a bearer token that the API server knows and whose owner may get "
                  "the path /metrics. Empty: every client may read metrics."),
      config::TextKey("metrics-review-token-file", options.review_token_file, "path",
                      "The token with which qrmd calls metrics-review-url. Its owner must have the "
                      "ClusterRole system:auth-delegator. Read again for each call."),
      config::TextKey("metrics-review-ca-file", options.review_ca_file,
                      "path; empty: the system's authorities",
                      "The certificate authority, in PEM, for metrics-review-url."),
      HttpAddressKey("probe-address", options.probe_address,
                     "The address of /healthz and /readyz, for kubelet's probes on the same node."),
      HttpAddressKey("page-address", options.page_address,
                     "The address of the live page about this node, such as 127.0.0.1:9757. The "
                     "page names pods: an address that is not loopback also requires "
                     "metrics-certificate-file, metrics-key-file and metrics-review-url. Clients "
                     "then need a token whose owner may get the path /node.json."),
  };
}

Status CheckHttp(const HttpOptions& options) {
  if (options.certificate_file.empty() != options.key_file.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot serve metrics over TLS: only one of metrics-certificate-file and "
                  "metrics-key-file is set; set both, or none");
  }
  if (!options.review_url.empty() && options.certificate_file.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot require tokens without TLS: an eavesdropper could steal them; set "
                  "metrics-certificate-file and metrics-key-file beside metrics-review-url");
  }
  QRM_RETURN_IF_ERROR(CheckPage(options));
  return CheckPorts(options);
}

}  // namespace qrm::manager
