// Counts answers by their addresses.
#include "manager/rpc/unread_answers.h"

#include <algorithm>
#include <utility>

namespace qrm::manager {

void UnreadAnswers::WhenRoom(Make make) {
  {
    const MutexLock lock(mutex_);
    waiting_.push_back(std::move(make));
  }
  MakeRoom();
  MakeWaiting();
}

uint64_t UnreadAnswers::Add(const std::string& peer, const void* answer, std::size_t bytes) {
  uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    number = ++latest_;
    unread_.emplace(number, Unread{.peer = peer, .answer = answer});
    Kept& kept = kept_[answer];
    if (kept.times++ == 0) {
      kept.bytes = bytes;
      bytes_ += bytes;
    }
  }
  MakeRoom();
  return number;
}

void UnreadAnswers::Remove(uint64_t number) {
  {
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
  MakeRoom();
  MakeWaiting();
}

std::size_t UnreadAnswers::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

void UnreadAnswers::MakeRoom() {
  std::string peer;
  {
    const MutexLock lock(mutex_);
    const bool is_alone = unread_.size() <= 1 && waiting_.empty();
    if (bytes_ <= most_bytes_ || is_alone || !leaving_.empty()) {
      return;
    }
    peer = leaving_ = unread_.begin()->second.peer;
  }
  disconnect_(peer);
}

void UnreadAnswers::MakeWaiting() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(making_, true)) {
      return;
    }
  }
  while (true) {
    Make make;
    {
      const MutexLock lock(mutex_);
      if (waiting_.empty() || bytes_ > most_bytes_) {
        making_ = false;
        return;
      }
      make = std::move(waiting_.front());
      waiting_.pop_front();
    }
    make();
  }
}

}  // namespace qrm::manager
