// The key of the group that may use the socket.
#include "manager/podresources/pod_resources_options.h"

#include <utility>

#include <fmt/format.h>

#include "api/base/number.h"
#include "api/base/section.h"

namespace qrm::manager {

config::ConfigKey GroupKey(std::string name, std::optional<gid_t>& place, std::string help) {
  return {.name = std::move(name),
          .range = "group id",
          .help = std::move(help),
          .read = [&place](const config::Section& section, const std::string& key) -> Status {
            QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
            const auto group = ParseNumber<gid_t>(text);
            if (!group.has_value()) {
              return section.Error(key, fmt::format("is '{}', which is not a group id", text),
                                   "write a number such as 1000");
            }
            place = group;
            return OkStatus();
          },
          .show = [&place] { return place ? std::to_string(*place) : std::string("\"\""); }};
}

}  // namespace qrm::manager
