// The daemon as an NRI plugin: attached to the runtime's socket, and attached again whenever it is
// cut off.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "manager/runtime/nri/nri_answer.h"
#include "manager/runtime/runtime_events.h"

namespace qrm::manager {

struct NriOptions {
  std::string socket = "/var/run/nri/nri.sock";
  std::string name = "qrm";
  /// Two digits; plugins with a lower one are asked earlier.
  std::string index = "90";
  /// From connecting to the last Synchronize. Generous: a runtime takes its plugins on one by one,
  /// and a silent one holds up the others for 5 s.
  std::chrono::milliseconds handshake_timeout{15000};
  /// How long a reply of RuntimeEvents may take before the runtime gets an answer without it. The
  /// runtime's own limit, minus a margin, when that is less.
  std::chrono::milliseconds reply_timeout{1800};
  /// The waits between attempts double from the first to the last value. The first attempt is
  /// immediate, and so is the first after a connection that lasted longer than the first value.
  std::chrono::milliseconds backoff_first{200};
  std::chrono::milliseconds backoff_last{5000};
  /// Runs on the I/O loop with every such answer; must not block.
  std::function<void(const NriAnswer&)> on_answer = [](const NriAnswer&) {};
};

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

  [[nodiscard]] NriStatus GetStatus() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
