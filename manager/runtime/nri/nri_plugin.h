// The daemon as an NRI plugin: attached to the runtime's socket, and attached again whenever it is
// cut off.
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
  uint64_t kicked = 0;  ///< disconnects while the runtime waited for an answer of ours
  std::optional<std::chrono::steady_clock::time_point> last_sync;
  std::string problem;  ///< why it is not connected: one sentence; empty when it is
};

/// Speaks NRI over one connection at a time and turns it into RuntimeEvents.
///
/// Every message is answered in time, whatever the handler does, because a plugin that is late is
/// cut off and the runtime goes on without it. Nothing that the runtime sends ends the process.
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
  /// Ends the connection because of `cause` and connects again, so that the runtime tells
  /// everything once more. An answer that is due gets out before: without it, a container would run
  /// without its devices and environment. Threads: the I/O loop.
  void Reconnect(Status cause);

  [[nodiscard]] NriStatus GetStatus() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
