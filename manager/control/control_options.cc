// The key for lists of users.
#include "manager/control/control_options.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/number.h"
#include "api/base/section.h"

namespace qrm::manager {

config::ConfigKey UserIdsKey(std::string name, std::vector<uid_t>& place, std::string help) {
  return {.name = std::move(name),
          .shape = config::KeyShape::kList,
          .range = "list of user ids",
          .help = std::move(help),
          .read = [&place](const config::Section& section, const std::string& key) -> Status {
            QRM_ASSIGN_OR_RETURN(const std::vector<std::string> words, section.Words(key));
            place.clear();
            for (const std::string& word : words) {
              const auto uid = ParseNumber<uid_t>(word);
              if (!uid.has_value()) {
                return section.Error(key, fmt::format("has '{}', which is not a user id", word),
                                     "write numbers such as [1000]");
              }
              place.push_back(*uid);
            }
            return OkStatus();
          },
          .show = [&place] { return fmt::format("[{}]", fmt::join(place, ", ")); }};
}

}  // namespace qrm::manager
