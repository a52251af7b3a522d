// Reads the configuration again while qrmd runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/daemon/config.h"
#include "manager/daemon/daemon.h"

namespace qrm::manager {

/// Reads file and flags as at the start.
using ConfigReader = std::function<StatusOr<Config>()>;

/// The keys whose values differ.
std::vector<ChangedKey> ChangedKeys(Config from, Config to);

/// Puts into force what can change while qrmd runs: log-level, the sections of built-in plugins,
/// and who may have which classes. The log names every other key that differs, which counts from
/// the next start on. A configuration that cannot be read, or whose sections a plugin refuses,
/// changes nothing.
///
/// Threads: one at a time.
class Reload {
 public:
  Reload(const Config& in_force, ConfigReader read);

  /// What puts the file into force as it is now. Threads: any; the result: one at a time.
  Daemon::Following ReadAgain();

  /// What would change with `next`. Threads: as what ReadAgain returned.
  ReadChanges Compare(const Config& next) const;

 private:
  bool CountsAtOnce(const ChangedKey& changed) const;
  Status Follow(const Config& next, const Daemon::Takers& takers);
  void Follow(const ChangedKey& changed, const Config& next, const Daemon::Takers& takers);

  Config in_force_;
  const ConfigReader read_;
};

}  // namespace qrm::manager
