// The daemon's attachment to the runtime, from before it can serve.
#pragma once

#include <chrono>
#include <memory>

#include "api/base/io_context.h"
#include "manager/runtime/nri/held_events.h"
#include "manager/runtime/nri/nri_plugin.h"

namespace qrm::manager {

/// Attaches at once, so that the runtime tells what exists while the daemon reads its checkpoint
/// and makes its parts: on a large node both take their time.
///
/// Threads: the I/O loop, or before it runs.
class NriAttachment {
 public:
  /// `patience` is how long the runtime may wait for a daemon that is not ready: after that it is
  /// left alone until DeliverTo, or a disk that hangs would hold up each container of the node.
  NriAttachment(boost::asio::io_context& io, NriOptions options,
                std::chrono::milliseconds patience = std::chrono::milliseconds(1000));
  ~NriAttachment();
  NriAttachment(const NriAttachment&) = delete;
  NriAttachment& operator=(const NriAttachment&) = delete;

  /// Connects. Errors: as NriPlugin::Start.
  Status Start();
  /// `events`, which outlives the attachment, hears what was told so far, as soon as the loop has
  /// time for it, and what is told from now on. Once, after Start.
  void DeliverTo(RuntimeEvents& events);
  /// The plugin that is attached, from DeliverTo on: until then it may be replaced. Threads: as it
  /// says.
  NriPlugin& plugin() { return *plugin_; }

 private:
  struct Timer;

  void GiveUp();

  boost::asio::io_context& io_;
  const NriOptions options_;
  const std::chrono::milliseconds patience_;
  HeldEvents events_;
  std::unique_ptr<NriPlugin> plugin_;  // never null
  const std::unique_ptr<Timer> timer_;
  bool is_heard_ = false;
  bool gave_up_ = false;
};

}  // namespace qrm::manager
