// The key of kubelet's address.
#include "manager/kubelet/kubelet_options.h"

#include <utility>

#include <fmt/format.h>

#include "api/base/section.h"
#include "api/http/https_url.h"

namespace qrm::manager {

config::ConfigKey HttpsUrlKey(std::string name, std::string& place, const char* example,
                              std::string help) {
  config::ConfigKey url = config::TextKey(
      std::move(name), place, fmt::format("such as {}; empty: not used", example), std::move(help));
  url.read = [&place, example](const config::Section& section, const std::string& key) -> Status {
    QRM_ASSIGN_OR_RETURN(place, section.Text(key, ""));
    if (!place.empty() && !ParseHttpsUrl(place).ok()) {
      return section.Error(key, fmt::format("is '{}', which is not an https address", place),
                           fmt::format("write one such as {}", example));
    }
    return OkStatus();
  };
  return url;
}

}  // namespace qrm::manager
