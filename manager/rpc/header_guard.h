// Follows the HTTP/2 frames of a client, and detects headers that do not end and frames that are
// too expensive.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace qrm::manager {

/// The client's side of one connection. gRPC 1.51 copies an unfinished header again with each frame
/// that continues it, and keeps finished headers without a bound. One connection can thus use a
/// CPU and hundreds of megabytes forever. So can frames that cost the client nothing: PING,
/// SETTINGS and RST_STREAM, and new calls, which gRPC does not limit until the client has
/// acknowledged the server's settings.
///
/// Threads: one at a time.
/// Source: RFC 9113, 3.4 (preface), 4.1 (frames), 6.1 (DATA), 6.2 (HEADERS), 6.5.3 (settings), 6.10
/// (CONTINUATION), 10.5.
class HeaderGuard {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Twice gRPC's default limit for a call's headers.
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 10;
  static constexpr int kMaxFrames = 16;
  static constexpr std::chrono::seconds kMaxTime{1};
  /// The time that each frame counts as. The sum may exceed the elapsed time by kBurst at most.
  /// Clients in Go send a PING or two for each answer, to measure the connection. RST_STREAM ends a
  /// call early, and SETTINGS begins a connection.
  static constexpr std::chrono::microseconds kPingTime{1000};
  static constexpr std::chrono::microseconds kResetTime{10'000};
  static constexpr std::chrono::microseconds kSettingsTime{10'000};
  static constexpr std::chrono::microseconds kHeadersTime{50};
  /// For all other frames: a client sends a WINDOW_UPDATE or two for each 16 KiB of an answer.
  static constexpr std::chrono::microseconds kFrameTime{10};
  static constexpr std::chrono::seconds kBurst{1};
  /// Concurrent calls of a connection. gRPC enforces this limit once the client has acknowledged
  /// its settings; before that, a client may begin only so many calls in total.
  static constexpr int kMaxCalls = 16;

  /// Reads the next bytes of the connection. False when it must end: its headers are too long, in
  /// too many frames, or have not been complete for too long, or there are too many frames or
  /// calls.
  /// Cost: O(frames).
  bool Take(std::string_view bytes, Time now);

  /// Since when headers have been incomplete.
  std::optional<Time> incomplete_since() const { return since_; }

  /// The received bytes of incomplete requests, with gRPC's overhead for each call and frame.
  std::size_t unfinished_bytes() const { return unfinished_bytes_; }

  /// The number of compressed requests that have begun since the last call. Source: gRPC over
  /// HTTP2, Length-Prefixed-Message.
  int TakeCompressed() { return std::exchange(compressed_, 0); }

 private:
  /// An incomplete request.
  struct Request {
    std::size_t bytes = 0;
    bool has_begun = false;  ///< its message has begun
  };

  bool BeginFrame(Time now);
  bool IsInTime(Time now);
  bool MayCall();
  void EndFrame();
  void CountRequest();

  std::size_t preface_left_ = 24;
  std::size_t payload_left_ = 0;
  std::array<uint8_t, 9> head_{};  ///< of the latest frame: length, type, flags, stream
  std::size_t head_size_ = 0;
  std::optional<Time> since_;
  std::size_t block_bytes_ = 0;
  int block_frames_ = 0;
  std::map<uint32_t, Request> unfinished_;  ///< by stream
  std::size_t unfinished_bytes_ = 0;
  bool acknowledged_ = false;  ///< the client has acknowledged the server's settings
  int early_calls_ = 0;
  bool at_message_ = false;  ///< the next byte is a message's first
  int compressed_ = 0;
  Time due_;  ///< the time up to which the frames so far count
};

}  // namespace qrm::manager
