// The keys that can change while qrmd runs, for those that read them on other threads.
#pragma once

#include <memory>
#include <string>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/daemon/node_config.h"

namespace qrm::manager {

/// The built-in plugins' keys, and what schedulers are told of them.
///
/// Threads: any.
class ConfigInForce {
 public:
  struct Keys {
    BuiltinOptions builtin;
    StatusOr<NodeConfig> told;
  };

  /// All of `parts` but its plugins' options outlive the result.
  explicit ConfigInForce(const NodeConfig::Parts& parts);

  std::shared_ptr<const Keys> Load() const;
  void Take(const BuiltinOptions& builtin);

  /// How the last reading of the file ended.
  void NoteReading(const Status& taken);
  /// Why the file as it is now was refused; empty when it was not.
  std::string refusal() const;

 private:
  const NodeConfig::Parts parts_;
  mutable Mutex mutex_;
  std::shared_ptr<const Keys> keys_ QRM_GUARDED_BY(mutex_);
  std::string refusal_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
