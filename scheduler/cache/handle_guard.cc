// Logs the first failures of a handle, and then ever fewer.
#include "scheduler/cache/handle_guard.h"

#include <bit>

#include "api/base/log.h"

namespace qrm::scheduler {

std::string HandleGuard::NoteLate(HandleCall& call) {
  const MutexLock lock(mutex_);
  call.late = true;
  const std::string* const type = call.type;
  if (type == nullptr) {
    call.late = false;
    return {};
  }
  ++blocked_[*type];
  any_blocked_ = true;
  ++counts_[*type].blocked;
  log::Error("resource blocks: it is left out until it returns", {{"resource", *type}});
  return *type;
}

bool HandleGuard::IsBlocked(const std::string& type) const {
  if (!any_blocked_) {
    return false;
  }
  const MutexLock lock(mutex_);
  return blocked_.contains(type);
}

void HandleGuard::CountUnknown(const std::string& type) {
  const MutexLock lock(mutex_);
  ++counts_[type].unknown;
}

std::map<std::string, HandleGuard::Counts> HandleGuard::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

void HandleGuard::NoteThrown(const std::string& type, const std::string& what) {
  const MutexLock lock(mutex_);
  const uint64_t count = ++counts_[type].threw;
  if (std::has_single_bit(count)) {
    log::Error("resource throws", {{"resource", type}, {"error", what}, {"times", count}});
  }
}

void HandleGuard::Returned(const std::string& type) {
  const MutexLock lock(mutex_);
  if (const auto blocked = blocked_.find(type);
      blocked != blocked_.end() && --blocked->second == 0) {
    blocked_.erase(blocked);
  }
  any_blocked_ = !blocked_.empty();
  log::Info("resource has returned", {{"resource", type}});
}

}  // namespace qrm::scheduler
