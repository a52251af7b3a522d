// The daemon as an NRI plugin: attaches to the runtime's socket, and again after each disconnect.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/base/io_context.h"
#include "manager/runtime/nri/nri_answer.h"
#include "manager/runtime/runtime_events.h"
#include "manager/runtime/runtime_options.h"

namespace qrm::manager {

/// The state of the attachment.
struct NriStatus {
  bool connected = false;  ///< registered and synchronized
  RuntimeInfo runtime;     ///< of the latest connection
  uint64_t connects = 0;   ///< synchronizations that succeeded
  uint64_t disconnects = 0;
  uint64_t kicked = 0;  ///< disconnects while the runtime waited for qrmd's answer
  std::optional<std::chrono::steady_clock::time_point> last_sync;
  std::string problem;  ///< why it is not connected: one sentence; empty when it is
};

/// Speaks NRI over one connection at a time and turns it into RuntimeEvents.
///
/// Answers every message in time, whatever the handler does: a runtime disconnects a plugin that is
/// late and continues without it. No message of the runtime can end the process.
///
/// Threads: Start and Stop before the I/O loop runs or on it; GetStatus any.
/// Source: NRI v1alpha1, releases 0.2 to 0.12.
class NriPlugin {
 public:
  /// `io` and `events` outlive the plugin.
  NriPlugin(boost::asio::io_context& io, NriOptions options, RuntimeEvents& events);
  /// Closes the connection; no event comes after it.
  ~NriPlugin();
  NriPlugin(const NriPlugin&) = delete;
  NriPlugin& operator=(const NriPlugin&) = delete;

  /// Connects now and for as long as the plugin lives. Errors: kInvalidArgument for a bad name,
  /// index or socket path.
  Status Start();
  void Stop();
  /// Ends the connection because of `cause` and connects again, so that the runtime synchronizes
  /// again. Pending answers are sent first: without them, a container would run without its devices
  /// and environment. Threads: the I/O loop.
  void Reconnect(Status cause);

  [[nodiscard]] NriStatus GetStatus() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
