// Parses the addresses of HTTPS servers.
#pragma once

#include <string>

#include "api/base/status.h"

namespace qrm {

/// "https://HOST[:PORT][/PATH]" in parts.
struct HttpsUrl {
  std::string host;
  std::string port = "443";
  std::string target = "/";
};

/// Errors: kInvalidArgument with the form.
StatusOr<HttpsUrl> ParseHttpsUrl(const std::string& text);

}  // namespace qrm
