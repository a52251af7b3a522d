// Follows the heads of what a client sends over HTTP/2, and tells when its headers do not come to
// an end or its frames cost too much.
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

/// The client's side of one connection. gRPC 1.51 copies all that it has of an unfinished header
/// again with each frame that continues it, and keeps finished ones without a bound: one connection
/// costs it a CPU and hundreds of megabytes, for as long as it likes. So do frames that cost a
/// client nothing: PING, SETTINGS and RST_STREAM, which it answers or tidies up after, and calls
/// that are begun, of which it takes any number until the client has acknowledged its settings.
///
/// Threads: one at a time.
/// Source: RFC 9113, 3.4 (preface), 4.1 (frames), 6.1 (DATA), 6.2 (HEADERS), 6.5.3 (settings), 6.10
/// (CONTINUATION), 10.5.
class HeaderGuard {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Twice what gRPC takes of a call's headers by default.
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 10;
  static constexpr int kMaxFrames = 16;
  static constexpr std::chrono::seconds kMaxTime{1};
  /// What a client's frames count as, of the time since it connected; a client is kBurst ahead at
  /// most. Clients in Go send a PING or two for each answer, to measure the connection; RST_STREAM
  /// ends a call early, and SETTINGS begins a connection.
  static constexpr std::chrono::microseconds kPingTime{1000};
  static constexpr std::chrono::microseconds kResetTime{10'000};
  static constexpr std::chrono::microseconds kSettingsTime{10'000};
  static constexpr std::chrono::microseconds kHeadersTime{50};
  /// Of all other frames: a client sends a WINDOW_UPDATE or two for each 16 KiB of an answer.
  static constexpr std::chrono::microseconds kFrameTime{10};
  static constexpr std::chrono::seconds kBurst{1};
  /// Calls of a connection at a time. gRPC sees to it once the client has acknowledged the settings
  /// that say so; before that, it has no more in all.
  static constexpr int kMaxCalls = 16;

  /// Reads the next bytes of the connection. False when it must end: its headers are too long, in
  /// too many frames, or have not been complete for too long, or there are too many frames or
  /// calls.
  /// Cost: O(frames).
  bool Take(std::string_view bytes, Time now);

  /// Since when headers have been incomplete.
  std::optional<Time> incomplete_since() const { return since_; }

  /// What was sent of requests that have not been complete yet, with what gRPC has for each call
  /// and frame.
  std::size_t unfinished_bytes() const { return unfinished_bytes_; }

  /// How many compressed requests have begun since it was asked last. Source: gRPC over HTTP2,
  /// Length-Prefixed-Message.
  int TakeCompressed() { return std::exchange(compressed_, 0); }

 private:
  /// One that has not been complete yet.
  struct Request {
    std::size_t bytes = 0;
    bool has_begun = false;  ///< its message
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
  bool acknowledged_ = false;  ///< the client has, the server's settings
  int early_calls_ = 0;
  bool at_message_ = false;  ///< the next byte is a message's first
  int compressed_ = 0;
  Time due_;  ///< what the frames so far count as, from the time of the latest pause on
};

}  // namespace qrm::manager
