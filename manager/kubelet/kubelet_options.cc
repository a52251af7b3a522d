// The key of kubelet's address.
#include "manager/kubelet/kubelet_options.h"

#include <utility>

#include <fmt/format.h>

#include "api/base/section.h"
#include "manager/kubelet/https_url.h"

namespace qrm::manager {

config::ConfigKey HttpsUrlKey(std::string name, std::string& place, std::string help) {
  config::ConfigKey url = config::TextKey(
      std::move(name), place, "https://HOST:PORT/pods; empty: not asked", std::move(help));
  url.read = [&place](const config::Section& section, const std::string& key) -> Status {
    QRM_ASSIGN_OR_RETURN(place, section.Text(key, ""));
    if (!place.empty() && !ParseHttpsUrl(place).ok()) {
      return section.Error(key, fmt::format("is '{}', which is no https address", place),
                           "write one such as https://127.0.0.1:10250/pods");
    }
    return OkStatus();
  };
  return url;
}

}  // namespace qrm::manager
