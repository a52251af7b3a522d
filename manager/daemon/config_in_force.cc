// Publishes the keys as one immutable value.
#include "manager/daemon/config_in_force.h"

#include <utility>

namespace qrm::manager {

ConfigInForce::ConfigInForce(const NodeConfig::Parts& parts) : parts_(parts) {
  Take(parts.builtin, parts.admission);
}

std::shared_ptr<const ConfigInForce::Keys> ConfigInForce::Load() const {
  const MutexLock lock(mutex_);
  return keys_;
}

void ConfigInForce::Take(const BuiltinOptions& builtin,
                         const placement::AdmissionOptions& admission) {
  auto keys = std::make_shared<const Keys>(Keys{
      builtin, admission, NodeConfig::Make({parts_.machine, builtin, admission, parts_.pod_keys})});
  const MutexLock lock(mutex_);
  keys_ = std::move(keys);
}

void ConfigInForce::NoteReading(const Status& taken) {
  const MutexLock lock(mutex_);
  refusal_ = taken.ok() ? "" : MessageOf(taken);
}

std::string ConfigInForce::refusal() const {
  const MutexLock lock(mutex_);
  return refusal_;
}

void ConfigInForce::NoteWaiting(std::vector<ChangedKey> keys) {
  const MutexLock lock(mutex_);
  waiting_ = std::move(keys);
}

std::vector<ChangedKey> ConfigInForce::waiting() const {
  const MutexLock lock(mutex_);
  return waiting_;
}

}  // namespace qrm::manager
