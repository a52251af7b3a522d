// The keys that can change while qrmd runs, for readers on other threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/daemon/node_config.h"
#include "manager/observability/config_trial.h"

namespace qrm::manager {

/// The keys of the built-in plugins and of admissions, and the configuration that schedulers get.
///
/// Threads: any.
class ConfigInForce {
 public:
  struct Keys {
    BuiltinOptions builtin;
    placement::AdmissionOptions admission;
    StatusOr<NodeConfig> told;
  };

  /// All of `parts` outlives the result, except the options of the plugins and of admissions.
  explicit ConfigInForce(const NodeConfig::Parts& parts);

  std::shared_ptr<const Keys> Load() const;
  void Take(const BuiltinOptions& builtin, const placement::AdmissionOptions& admission);

  /// Records the result of the latest reload.
  void NoteReading(const Status& taken);
  /// Why the latest reload was rejected; empty if it was accepted.
  std::string refusal() const;
  /// Records the keys of the file that wait for a restart.
  void NoteWaiting(std::vector<ChangedKey> keys);
  std::vector<ChangedKey> waiting() const;

 private:
  const NodeConfig::Parts parts_;
  mutable Mutex mutex_;
  std::shared_ptr<const Keys> keys_ QRM_GUARDED_BY(mutex_);
  std::string refusal_ QRM_GUARDED_BY(mutex_);
  std::vector<ChangedKey> waiting_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
