// The key of the index among NRI plugins.
#include "manager/runtime/runtime_options.h"

#include <utility>

#include <fmt/format.h>

#include "api/base/section.h"

namespace qrm::manager {

config::ConfigKey NriIndexKey(std::string name, std::string& place, std::string help) {
  return {.name = std::move(name),
          .range = "00 to 99",
          .help = std::move(help),
          .read = [&place](const config::Section& section, const std::string& key) -> Status {
            QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
            if (text.size() != 2 || text.find_first_not_of("0123456789") != std::string::npos) {
              return section.Error(key, fmt::format("is '{}', which is not two digits", text),
                                   "write \"00\" to \"99\"");
            }
            place = text;
            return OkStatus();
          },
          .show = [&place] { return "\"" + place + "\""; }};  // else YAML takes it as a number
}

}  // namespace qrm::manager
