// Where metrics and health are served: the option, its default and its key.
#pragma once

#include <string>
#include <vector>

#include "api/base/config_key.h"

namespace qrm::manager {

struct HttpOptions {
  std::string address = ":9753";  ///< empty: not served
};

inline std::vector<config::ConfigKey> HttpKeys(HttpOptions& options) {
  return {config::TextKey("metrics-address", options.address, "`:PORT` or `IP:PORT`; empty: off",
                          "Where /metrics, /healthz and /readyz are served.")};
}

}  // namespace qrm::manager
