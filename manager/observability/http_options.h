// Where metrics and probes are served: the options, their defaults and their keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/status.h"

namespace qrm::manager {

struct HttpOptions {
  std::string metrics_address = ":9753";         ///< empty: not served
  std::string probe_address = "127.0.0.1:9754";  ///< empty: not served
};

/// A place to listen at.
struct HttpAddress {
  std::string host;  ///< an IPv4 or IPv6 address without brackets; empty: all of both kinds
  uint16_t port = 0;
};

/// Reads `:9753`, `127.0.0.1:9753` or `[::1]:9753`. Errors: kInvalidArgument with the form.
StatusOr<HttpAddress> ParseHttpAddress(const std::string& text);

/// Whether each of them can be had beside the other. Errors: kInvalidArgument when both name one
/// port of one address.
Status CheckHttp(const HttpOptions& options);

/// A text that is empty or an HttpAddress.
config::ConfigKey HttpAddressKey(std::string name, std::string& place, std::string help);

inline std::vector<config::ConfigKey> HttpKeys(HttpOptions& options) {
  return {HttpAddressKey("metrics-address", options.metrics_address,
                         "Where /metrics is served, to whoever reaches it."),
          HttpAddressKey("probe-address", options.probe_address,
                         "Where /healthz and /readyz are served, for kubelet's probes on the same "
                         "node.")};
}

}  // namespace qrm::manager
