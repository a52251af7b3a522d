// Reads file and flags through the table of keys.
#include "manager/config/read_config.h"

#include "api/base/config_file.h"
#include "manager/config/config_table.h"

namespace qrm::manager {
StatusOr<Config> ReadConfig(const std::string& file, const StringMap& flags) {
  Config config;
  QRM_RETURN_IF_ERROR(config::ReadKeys({.file = file, .flags = flags}, ConfigKeys(config), "qrmd"));
  QRM_RETURN_IF_ERROR(CheckHttp(config.http));
  QRM_RETURN_IF_ERROR(CheckPublish(config.publish));
  return config;
}

bool IsConfigKey(const std::string& name) {
  Config config;
  return config::FindKey(ConfigKeys(config), name) != nullptr;
}

std::string NearestConfigKey(const std::string& name) {
  Config config;
  return config::NearestKey(ConfigKeys(config), name);
}

}  // namespace qrm::manager
