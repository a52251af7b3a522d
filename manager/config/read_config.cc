// Reads the file and the flags by the table of keys.
#include "manager/config/read_config.h"

#include "api/base/config_file.h"
#include "manager/config/config_table.h"

namespace qrm::manager {
namespace {

StatusOr<Config> Read(const config::ConfigSources& sources) {
  Config config;
  QRM_RETURN_IF_ERROR(config::ReadKeys(sources, ConfigKeys(config), "qrmd"));
  QRM_RETURN_IF_ERROR(CheckHttp(config.http));
  QRM_RETURN_IF_ERROR(CheckPublish(config.publish));
  return config;
}

}  // namespace

StatusOr<Config> ReadConfig(const std::string& file, const StringMap& flags) {
  return Read({.file = file, .text = {}, .flags = flags});
}

StatusOr<Config> ReadConfigText(const std::string& text, const std::string& file,
                                const StringMap& flags) {
  return Read({.file = file, .text = text, .flags = flags});
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
