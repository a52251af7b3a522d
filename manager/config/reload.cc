// Compares the configuration that was read with the one in force, key by key.
#include "manager/config/reload.h"

#include <algorithm>
#include <utility>

#include "api/base/log.h"
#include "manager/config/config_table.h"

namespace qrm::manager {

std::vector<ChangedKey> ChangedKeys(Config from, Config to) {
  const std::vector<config::ConfigKey> before = ConfigKeys(from);
  const std::vector<config::ConfigKey> after = ConfigKeys(to);
  std::vector<ChangedKey> changed;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (std::string now = before[i].show(), next = after[i].show(); now != next) {
      changed.push_back({before[i].name, std::move(now), std::move(next)});
    }
  }
  return changed;
}

Reload::Reload(const Config& in_force, ConfigReader read)
    : in_force_(in_force), read_(std::move(read)) {}

void Reload::ReadAgain() {
  const StatusOr<Config> next = read_();
  if (!next.ok()) {
    log::Error("configuration not read again: the former one stays in force",
               {{"error", MessageOf(next.status())}});
    return;
  }
  const std::vector<ChangedKey> changed = ChangedKeys(in_force_, *next);
  const log::Level level = next->process.log_level;
  log::SetLevel(std::min(level, in_force_.process.log_level));  // so that one of them shows this
  log::Info("configuration read again", {{"changed_keys", changed.size()}});
  for (const auto& [key, from, to] : changed) {
    if (key == "log-level") {
      log::Info("configuration changed", {{"key", key}, {"from", from}, {"to", to}});
    } else {
      log::Warning("configuration differs from what is in force: start qrmd again to change it",
                   {{"key", key}, {"in_force", from}, {"read", to}});
    }
  }
  in_force_.process.log_level = level;
  log::SetLevel(level);
}

}  // namespace qrm::manager
