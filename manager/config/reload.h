// Reads the configuration again while qrmd runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/daemon/config.h"
#include "manager/daemon/daemon.h"

namespace qrm::manager {

/// Reads the file and the flags as at the start.
using ConfigReader = std::function<StatusOr<Config>()>;

/// The keys whose values differ.
std::vector<ChangedKey> ChangedKeys(Config from, Config to);

/// Applies the keys that can change while qrmd runs: log-level, permissions, compute-drivers, the
/// sections of built-in plugins, and the rules of class-types. The log names all other keys that
/// differ; they change at the next start. A configuration that cannot be read, or that a plugin
/// rejects, changes nothing.
///
/// Threads: one at a time.
class Reload {
 public:
  Reload(const Config& in_force, ConfigReader read);

  /// Reads the file now; the result applies it. Threads: any; the result: one at a time.
  Daemon::Following ReadAgain();

  /// What `next` would change. Threads: as the result of ReadAgain.
  ReadChanges Compare(const Config& next) const;

 private:
  bool CountsAtOnce(const ChangedKey& changed) const;
  Status Follow(const Config& next, const Daemon::Takers& takers);
  /// False when the key waits for a restart.
  bool Follow(const ChangedKey& changed, const Config& next, const Daemon::Takers& takers);

  Config in_force_;
  const ConfigReader read_;
};

}  // namespace qrm::manager
