// The table of configuration keys: the one place that knows their names, defaults and ranges.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/base/section.h"
#include "api/base/status.h"
#include "manager/config/config.h"

namespace qrm::manager {

/// How a value is written.
enum class KeyShape { kScalar, kList, kMapping };

struct ConfigKey {
  std::string name;
  KeyShape shape = KeyShape::kScalar;
  std::string range;  ///< what values it takes
  std::string help;
  /// Reads the key, which the section has.
  std::function<Status(const config::Section&, const std::string& name, Config&)> read;
  std::function<std::string(const Config&)> show;  ///< the value as one writes it
};

/// All keys, in the order of the reference.
const std::vector<ConfigKey>& ConfigKeys();

/// "3s", "500ms", "1m": a whole number and a unit. Errors: kInvalidArgument with the form.
StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text);
std::string DurationText(std::chrono::milliseconds duration);

}  // namespace qrm::manager
