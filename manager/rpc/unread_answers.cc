// Counts answers by their addresses.
#include "manager/rpc/unread_answers.h"

#include <algorithm>

namespace qrm::manager {

UnreadAnswers::Added UnreadAnswers::Add(const std::string& peer, const void* answer,
                                        std::size_t bytes) {
  const MutexLock lock(mutex_);
  const uint64_t number = ++latest_;
  unread_.emplace(number, Unread{.peer = peer, .answer = answer});
  Kept& kept = kept_[answer];
  if (kept.times++ == 0) {
    kept.bytes = bytes;
    bytes_ += bytes;
  }
  const auto& [oldest, unread] = *unread_.begin();
  if (bytes_ <= most_bytes_ || oldest == number || !leaving_.empty()) {
    return {.number = number};
  }
  leaving_ = unread.peer;
  return {.number = number, .to_disconnect = leaving_};
}

void UnreadAnswers::Remove(uint64_t number) {
  const MutexLock lock(mutex_);
  const auto unread = unread_.find(number);
  if (unread == unread_.end()) {  // its call ended before an answer was given
    return;
  }
  const auto kept = kept_.find(unread->second.answer);
  if (--kept->second.times == 0) {
    bytes_ -= kept->second.bytes;
    kept_.erase(kept);
  }
  unread_.erase(unread);
  const auto is_leaving = [this](const auto& entry)
                              QRM_REQUIRES(mutex_) { return entry.second.peer == leaving_; };
  if (!leaving_.empty() && std::none_of(unread_.begin(), unread_.end(), is_leaving)) {
    leaving_.clear();
  }
}

std::size_t UnreadAnswers::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace qrm::manager
