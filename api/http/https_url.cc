// Splits an address into its parts.
#include "api/http/https_url.h"

#include "api/base/errorf.h"

namespace qrm {
namespace {

constexpr char kScheme[] = "https://";

}  // namespace

StatusOr<HttpsUrl> ParseHttpsUrl(const std::string& text) {
  Status wrong = Errorf(StatusCode::kInvalidArgument,
                        "cannot use '{}': it is not an https address; write one such as "
                        "https://127.0.0.1:10250/pods",
                        text);
  if (!text.starts_with(kScheme)) {
    return wrong;
  }
  HttpsUrl url;
  std::string authority = text.substr(sizeof(kScheme) - 1);
  if (const auto slash = authority.find('/'); slash != std::string::npos) {
    url.target = authority.substr(slash);
    authority.resize(slash);
  }
  const auto bracket = authority.find(']');
  const auto colon = authority.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon != std::string::npos) {
    url.port = authority.substr(colon + 1);
    authority.resize(colon);
  }
  const bool is_v6 = bracket != std::string::npos && authority.front() == '[';
  url.host = is_v6 ? authority.substr(1, bracket - 1) : authority;
  const bool good_port = !url.port.empty() && url.port.size() <= 5 &&
                         url.port.find_first_not_of("0123456789") == std::string::npos;
  if (url.host.empty() || !good_port || text.find_first_of(" \t\r\n") != std::string::npos) {
    return wrong;
  }
  return url;
}

}  // namespace qrm
