// Parses the addresses, so that what cannot be listened at is refused with the configuration.
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
                      "cannot serve {} on {} and {} on {}: it is one port; give {} and {} one each",
                      a.what, a.address, b.what, b.address, a.key, b.key);
      }
    }
  }
  return OkStatus();
}

/// It names pods. Errors: kInvalidArgument.
Status CheckPage(const HttpOptions& options) {
  const StatusOr<HttpAddress> page = ParseHttpAddress(options.page_address);
  if (!page.ok() || IsLoopback(*page) || !options.review_url.empty()) {
    return OkStatus();
  }
  return Errorf(StatusCode::kInvalidArgument,
                "cannot serve the page at {}: it would tell other machines of this node's pods; "
                "set page-address to an address of this machine only, such as 127.0.0.1:9755, or "
                "set metrics-certificate-file, metrics-key-file and metrics-review-url, so that "
                "it is told to bearers of tokens",
                options.page_address);
}

}  // namespace

std::vector<config::ConfigKey> HttpKeys(HttpOptions& options) {
  return {
      HttpAddressKey("metrics-address", options.metrics_address,
                     "Where /metrics is served, to whoever reaches it."),
      config::TextKey(
          "metrics-certificate-file", options.certificate_file, "path; empty: without TLS",
          "The certificate chain, in PEM, that metrics and the page are served with over "
          "TLS (1.2 or newer). Read again when it changes."),
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
      HttpAddressKey("page-address", options.page_address,
                     "Where a page for people is served that shows this node live, such as "
                     "127.0.0.1:9755. It names pods: beyond loopback addresses it needs "
                     "metrics-certificate-file, metrics-key-file and metrics-review-url, which "
                     "guard it as they guard metrics, by the path /node.json."),
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
  QRM_RETURN_IF_ERROR(CheckPage(options));
  return CheckPorts(options);
}

}  // namespace qrm::manager
