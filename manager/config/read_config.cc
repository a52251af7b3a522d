// Reads the file and the flags by the table of keys.
#include "manager/config/read_config.h"

#include "api/base/config_file.h"
#include "manager/config/config_table.h"
#include "plugins/kernel/knob.h"

namespace qrm::manager {
namespace {

/// Pools with the key idle-weight need a class, which no other key has to offer.
Status OfferIdleWeight(Config& config) {
  const auto cpu = config.builtin.sections.find("cpu");
  if (cpu == config.builtin.sections.end()) {
    return OkStatus();
  }
  QRM_ASSIGN_OR_RETURN(const auto pools, cpu->second.Children("pools"));
  for (const auto& [name, pool] : pools) {
    QRM_ASSIGN_OR_RETURN(const bool is_idle, pool.Flag("idle-weight", false));
    if (is_idle) {
      config.classes.enabled = true;
      config.classes.types.try_emplace(kernel::kSchedulingType);
    }
  }
  return OkStatus();
}

StatusOr<Config> Read(const config::ConfigSources& sources) {
  Config config;
  QRM_RETURN_IF_ERROR(config::ReadKeys(sources, ConfigKeys(config), "qrmd"));
  QRM_RETURN_IF_ERROR(CheckHttp(config.http));
  QRM_RETURN_IF_ERROR(CheckPublish(config.publish));
  QRM_RETURN_IF_ERROR(OfferIdleWeight(config));
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
