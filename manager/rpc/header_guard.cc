// Reads the heads of frames and skips their payload.
#include "manager/rpc/header_guard.h"

#include <algorithm>

namespace qrm::manager {
namespace {

constexpr std::size_t kTypeAt = 3;
constexpr std::size_t kFlagsAt = 4;
constexpr std::size_t kStreamAt = 5;
constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kResetStream = 3;
constexpr uint8_t kSettings = 4;
constexpr uint8_t kPing = 6;
constexpr uint8_t kContinuation = 9;
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kAck = 1;
constexpr uint8_t kEndHeaders = 4;
constexpr int kCompressed = 1;
/// gRPC's approximate memory for a frame beside its bytes, and for a call.
constexpr std::size_t kFrameBytes = 64;
constexpr std::size_t kCallBytes = std::size_t{8} << 10;

std::chrono::microseconds TimeOf(uint8_t type) {
  switch (type) {
    case kPing:
      return HeaderGuard::kPingTime;
    case kResetStream:
      return HeaderGuard::kResetTime;
    case kSettings:
      return HeaderGuard::kSettingsTime;
    case kHeaders:
      return HeaderGuard::kHeadersTime;
    default:
      return HeaderGuard::kFrameTime;
  }
}

}  // namespace

bool HeaderGuard::Take(std::string_view bytes, Time now) {
  if (since_.has_value() && now - *since_ >= kMaxTime) {
    return false;
  }
  while (!bytes.empty()) {
    if (std::size_t& left = preface_left_ > 0 ? preface_left_ : payload_left_; left > 0) {
      const std::size_t passed = std::min(left, bytes.size());
      compressed_ += at_message_ ? bytes.front() & kCompressed : 0;
      at_message_ = false;
      left -= passed;
      bytes.remove_prefix(passed);
      if (payload_left_ == 0 && head_size_ == head_.size()) {
        EndFrame();
      }
      continue;
    }
    head_[head_size_++] = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    if (head_size_ == head_.size() && !BeginFrame(now)) {
      return false;
    }
  }
  return true;
}

bool HeaderGuard::BeginFrame(Time now) {
  payload_left_ = std::size_t{head_[0]} << 16 | std::size_t{head_[1]} << 8 | head_[2];
  if (head_[kTypeAt] == kHeaders) {
    since_ = now;
    block_bytes_ = payload_left_;
    block_frames_ = 1;
  } else if (head_[kTypeAt] == kContinuation) {
    block_bytes_ += payload_left_;
    ++block_frames_;
  }
  const bool too_long = block_bytes_ > kMaxBytes || block_frames_ > kMaxFrames;
  if ((since_.has_value() && too_long) || !MayCall()) {
    return false;
  }
  CountRequest();
  if (payload_left_ == 0) {
    EndFrame();
  }
  return IsInTime(now);
}

bool HeaderGuard::IsInTime(Time now) {
  due_ = std::max(due_, now) + TimeOf(head_[kTypeAt]);
  return due_ - now <= kBurst;
}

bool HeaderGuard::MayCall() {
  const uint8_t type = head_[kTypeAt];
  acknowledged_ = acknowledged_ || (type == kSettings && (head_[kFlagsAt] & kAck) != 0);
  return acknowledged_ || type != kHeaders || ++early_calls_ <= kMaxCalls;
}

void HeaderGuard::EndFrame() {
  head_size_ = 0;
  const bool of_headers = head_[kTypeAt] == kHeaders || head_[kTypeAt] == kContinuation;
  if (of_headers && (head_[kFlagsAt] & kEndHeaders) != 0) {
    since_.reset();
  }
}

void HeaderGuard::CountRequest() {
  const uint8_t type = head_[kTypeAt];
  if (type != kData && type != kHeaders && type != kResetStream) {
    return;
  }
  uint32_t stream = 0;
  for (std::size_t i = kStreamAt; i < head_.size(); ++i) {
    stream = stream << 8 | head_[i];
  }
  const bool has_bytes = type == kData && payload_left_ > 0;
  const auto found = unfinished_.find(stream);
  at_message_ = has_bytes && found != unfinished_.end() && !found->second.has_begun;
  if (type == kResetStream || (head_[kFlagsAt] & kEndStream) != 0) {
    if (found != unfinished_.end()) {
      unfinished_bytes_ -= found->second.bytes;
      unfinished_.erase(found);
    }
    return;
  }
  Request& request = unfinished_[stream];
  const std::size_t bytes = type == kHeaders ? kCallBytes : payload_left_ + kFrameBytes;
  request.has_begun = request.has_begun || has_bytes;
  request.bytes += bytes;
  unfinished_bytes_ += bytes;
}

}  // namespace qrm::manager
